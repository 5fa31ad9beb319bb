package figure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
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
	// Series are the curves in the order of their names. The page groups them by name: *_norm, delta_* and others.
	Series []series `json:"series"`
}

type series struct {
	Name   string `json:"name"`
	Values Column `json:"values"`
}

// Column has 6 significant digits in JSON, and null for an undefined figure.
type Column []float64

// MarshalJSON implements json.Marshaler.
func (c Column) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, v := range c {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, v, 'g', 6, 64)
		}
	}
	return append(out, ']'), nil
}

// ReadCurves reads and thins the trace of an item.
func ReadCurves(ctx context.Context, store result.Files, e *entry.Entry) (*Curves, error) {
	t, err := readTrace(ctx, store, e.ID)
	if err != nil {
		return nil, err
	}
	return thin(t), nil
}

// readTrace reads the trace of an item, whose curves have a value for each step.
func readTrace(ctx context.Context, store result.Files, id string) (item.Trace, error) {
	key := item.Key(id, item.FileTrace)
	data, err := store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	var t item.Trace
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	for name, values := range t {
		if steps := len(t[item.CurveTimestep]); len(values) != steps {
			return nil, fmt.Errorf("decode %s: %s has %d entries, timestep has %d", key, name, len(values), steps)
		}
	}
	return t, nil
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
func thin(t item.Trace) *Curves {
	at := evenSteps(len(t[item.CurveTimestep]), maxCurvePoints)
	c := &Curves{}
	for _, k := range at {
		c.Step, c.Timestep = append(c.Step, k+1), append(c.Timestep, int(t[item.CurveTimestep][k]))
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if name == stepSize || name == item.CurveTimestep {
			continue
		}
		s := series{Name: name}
		for _, k := range at {
			s.Values = append(s.Values, t[name][k])
		}
		c.Series = append(c.Series, s)
	}
	return c
}
