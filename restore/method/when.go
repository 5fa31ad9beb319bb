package method

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx"
)

// When builds a part of the step that only some steps compute: those whose planned scalar flag is 1. In the others, where it
// is 0, When returns state as it is, and the part costs nothing. Otherwise body is as in [Builder.Repeat]: it must use
// its own Builder, returns values of the types and shapes of state, and no gradient passes through it. It can repeat, but not
// contain another When.
//
// The part is a loop of the runtime with one iteration or none, also where [Builder.Repeat] does without a loop.
func (b *Builder) When(flag string, state []onnx.Value, body func(b *Builder, state []onnx.Value) ([]onnx.Value, error)) ([]onnx.Value, error) {
	if b.flag != "" {
		return nil, fmt.Errorf("method %s: when %q inside when %q", b.run.Info.Name, flag, b.flag)
	}
	var inner error
	known := len(b.tally.passes)
	final, _ := b.Loop(b.Cast(b.Planned(flag), onnx.Int64), state, func(g *onnx.Graph, _ onnx.Value, state []onnx.Value) (next, collect []onnx.Value) {
		part := &Builder{Graph: g, run: b.run, in: b.in, tally: b.tally, times: b.times, flag: flag}
		if next, inner = body(part, state); inner == nil {
			inner = b.run.wantSame(state, next)
		}
		if inner != nil {
			return state, nil
		}
		return next, nil
	})
	b.tally.passes = b.tally.passes[:known] // their values are not visible here
	return final, inner
}

// wantSame returns an error unless the values after an iteration have the types and shapes of those before it.
func (r *Run) wantSame(before, after []onnx.Value) error {
	if len(after) != len(before) {
		return fmt.Errorf("method %s: repeat: %d state tensors after an iteration, want %d", r.Info.Name, len(after), len(before))
	}
	for k, v := range after {
		if v.DType != before[k].DType || !slices.Equal(v.Dims, before[k].Dims) {
			return fmt.Errorf("method %s: repeat: state tensor %d has shape %v after an iteration, want %v",
				r.Info.Name, k+1, v.Dims, before[k].Dims)
		}
	}
	return nil
}
