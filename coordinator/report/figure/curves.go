package figure

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/manifest"
)

// maxCurvePoints bounds the points of one curve on the page. The page shows a longer trace at evenly spaced steps,
// including the first and the last, without averages.
const maxCurvePoints = 256

// stepSize is a curve that the page omits: the schedule determines it and not the image.
const stepSize = "gamma"

// Curves are the solver's curves of one item in the form that the page's script reads.
type Curves struct {
	// Step counts from 1; Timestep is the prior's time index there.
	Step     []int `json:"step"`
	Timestep []int `json:"t"`
	// Series are the curves in the order of the trace. The page groups them by name: *_norm, delta_* and others.
	Series []series `json:"series"`
}

type series struct {
	Name   string   `json:"name"`
	Values []number `json:"values"`
}

// number has 4 significant digits in JSON, enough for a chart.
type number float64

// MarshalJSON writes null for NaN and infinities.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', 4, 64), nil
}

// ReadCurves reads and thins the trace of an item.
func ReadCurves(ctx context.Context, store result.Files, e *entry.Entry) (*Curves, error) {
	_, c, err := readTrace(ctx, store, e.ID)
	return c, err
}

// readTrace reads the trace of an item, complete and thinned.
func readTrace(ctx context.Context, store result.Files, id string) (*manifest.Trace, *Curves, error) {
	key := manifest.ItemKey(id, manifest.FileTrace)
	data, err := store.Get(ctx, key)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", key, err)
	}
	var t manifest.Trace
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", key, err)
	}
	c, err := thin(&t)
	if err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", key, err)
	}
	return &t, c, nil
}

// evenSteps are the indices of at most limit evenly spaced steps, with the first and the last.
func evenSteps(steps, limit int) []int {
	points := min(steps, limit)
	out := make([]int, points)
	for p := range out {
		out[p] = p
		if steps > points {
			out[p] = p * (steps - 1) / (points - 1)
		}
	}
	return out
}

// thin selects the steps of the page.
func thin(t *manifest.Trace) (*Curves, error) {
	steps := len(t.Timestep)
	at := evenSteps(steps, maxCurvePoints)
	points := len(at)
	c := &Curves{Step: make([]int, points), Timestep: make([]int, points)}
	for p, k := range at {
		c.Step[p], c.Timestep[p] = k+1, t.Timestep[k]
	}
	for _, curve := range t.Curves {
		if len(curve.Values) != steps {
			return nil, fmt.Errorf("%s has %d entries, timestep has %d", curve.Name, len(curve.Values), steps)
		}
		if curve.Name == stepSize {
			continue
		}
		values := make([]number, points)
		for p, k := range at {
			values[p] = number(curve.Values[k])
		}
		c.Series = append(c.Series, series{curve.Name, values})
	}
	return c, nil
}
