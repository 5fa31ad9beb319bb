package report

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"ddiff/manifest"
)

// maxCurvePoints bounds the points of one curve on the page. A longer trace is thinned to
// evenly spaced steps, the first and the last among them; the values are not averaged.
const maxCurvePoints = 256

// curves are the solver's curves of one item as the page's script reads them.
type curves struct {
	// Step counts from 1; Timestep is the prior's time index there.
	Step     []int `json:"step"`
	Timestep []int `json:"t"`
	// Series are the curves of the trace. The page draws those named *_norm and delta_*.
	Series []series `json:"series"`
}

type series struct {
	Name   string   `json:"name"`
	Values []number `json:"values"`
}

// number is written with 4 significant digits: more cannot be seen.
type number float64

// MarshalJSON writes null for what JSON has no number for.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', 4, 64), nil
}

// readCurves reads and thins the trace of an item.
func readCurves(ctx context.Context, store files, e *entry) (*curves, error) {
	key := manifest.ItemKey(e.ID, manifest.FileTrace)
	data, err := store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	var t manifest.Trace
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	c, err := thin(&t)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	return c, nil
}

func thin(t *manifest.Trace) (*curves, error) {
	steps := len(t.Timestep)
	c := &curves{Step: []int{}}
	for _, curve := range t.Curves {
		if len(curve.Values) != steps {
			return nil, fmt.Errorf("%s has %d entries, timestep has %d", curve.Name, len(curve.Values), steps)
		}
		c.Series = append(c.Series, series{Name: curve.Name})
	}
	points := min(steps, maxCurvePoints)
	for p := range points {
		k := p
		if steps > points {
			k = p * (steps - 1) / (points - 1)
		}
		c.Step = append(c.Step, k+1)
		c.Timestep = append(c.Timestep, t.Timestep[k])
		for i, curve := range t.Curves {
			c.Series[i].Values = append(c.Series[i].Values, number(curve.Values[k]))
		}
	}
	return c, nil
}
