package method

import (
	"fmt"

	"ddiff/restore/onnx"
)

// Index returns the constant i as the index of Listed, Moment and DrawAt, int64 of rank 0.
func (b *Builder) Index(i int) onnx.Value { return b.Reshape(b.Ints(i)) }

// Repeat repeats body inside the step, count times, for loops such as Langevin's or Adam's. body builds one
// iteration: it reads the index i, the iteration's noise [N, C, H, W] and the state, and returns the next state, of
// the same types and shapes. Repeat returns the state after the last iteration.
//
// draw names a draw whose [Draw.Count] is count. If it is empty, noise is the zero Value. The iterations start with state.
//
// body must use its own Builder, not that of the step. It has the measurement, the state of the step, the prior and the
// planned numbers, those of lists at i, see [Builder.Listed] and [Builder.Moment]. body can use values that the step has
// computed, take gradients, and repeat.
//
// After Repeat, only the returned state can be used, and no gradient passes through the iterations: [Builder.Gradient]
// returns [onnx.ErrNoGradient] if they are a loop. To differentiate a sequence of evaluations, build one after the other in Go.
//
// The iterations are a loop of the runtime, or follow one another in the graph if the provider has no loop. A cancellation
// ends the loop between two operations.
func (b *Builder) Repeat(count int, draw string, state []onnx.Value,
	body func(b *Builder, i, noise onnx.Value, state []onnx.Value) ([]onnx.Value, error)) ([]onnx.Value, error) {
	if count < 1 || len(state) == 0 {
		return nil, fmt.Errorf("method %s: repeat %d times with %d state tensors, want at least one of both", b.run.Info.Name, count, len(state))
	}
	if draw != "" {
		if c := b.run.counts[b.drawIndex(draw)]; c != count {
			return nil, fmt.Errorf("method %s: repeat %d times with draw %q, which has a count of %d", b.run.Info.Name, count, draw, c)
		}
	}
	iterate := func(b *Builder, i onnx.Value, state []onnx.Value) ([]onnx.Value, error) {
		var noise onnx.Value
		if draw != "" {
			noise = b.DrawAt(draw, i)
		}
		next, err := body(b, i, noise, state)
		if err != nil {
			return nil, err
		}
		return next, b.run.wantSame(state, next)
	}
	if count <= b.in.Unroll {
		var err error
		for i := range count {
			if state, err = iterate(b, b.Index(i), state); err != nil {
				return nil, err
			}
		}
		return state, nil
	}
	var inner error
	known := len(b.tally.passes)
	final, _ := b.Loop(b.Ints(count), state, func(g *onnx.Graph, i onnx.Value, state []onnx.Value) (next, collect []onnx.Value) {
		next, inner = iterate(&Builder{Graph: g, run: b.run, in: b.in, tally: b.tally, times: b.times * count, flag: b.flag}, i, state)
		if inner != nil {
			return state, nil
		}
		return next, nil
	})
	b.tally.passes = b.tally.passes[:known] // their values are not visible here
	return final, inner
}
