package method

import (
	"slices"

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
// fails with [onnx.ErrNoGradient] if they are a loop. To differentiate a sequence of evaluations, build one after the other in Go.
//
// The iterations are a loop of the runtime, or follow one another in the graph if the provider has no loop. A cancellation
// ends the loop between two operations.
func (b *Builder) Repeat(count int, draw string, state []onnx.Value, body func(b *Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value) []onnx.Value {
	if count < 1 || len(state) == 0 {
		b.fail("repeat %d times with %d state tensors, want at least one of both", count, len(state))
	}
	if draw != "" {
		if c := b.run.counts[b.drawIndex(draw)]; c != count {
			b.fail("repeat %d times with draw %q, which has a count of %d", count, draw, c)
		}
	}
	iterate := func(b *Builder, i onnx.Value, state []onnx.Value) []onnx.Value {
		var noise onnx.Value
		if draw != "" {
			noise = b.DrawAt(draw, i)
		}
		return b.same(state, body(b, i, noise, state))
	}
	if count <= b.in.unroll {
		for i := range count {
			state = iterate(b, b.Index(i), state)
		}
		return state
	}
	return b.loop(b.Ints(count), b.times*count, b.flag, state, iterate)
}

// loop builds a loop of the runtime. times and flag are those of the Builder of an iteration.
func (b *Builder) loop(trips onnx.Value, times int, flag string, state []onnx.Value, iterate func(b *Builder, i onnx.Value, state []onnx.Value) []onnx.Value) []onnx.Value {
	known := len(b.tally.passes)
	final, _ := b.Loop(trips, state, func(g *onnx.Graph, i onnx.Value, state []onnx.Value) (next, collect []onnx.Value) {
		return iterate(&Builder{Graph: g, run: b.run, in: b.in, tally: b.tally, times: times, flag: flag}, i, state), nil
	})
	b.tally.passes = b.tally.passes[:known] // their values are not visible here
	return final
}

// When builds a part of the step that only some steps compute: those whose planned scalar flag is 1. In the others, where it
// is 0, When returns state as it is, and the part costs nothing. Otherwise body is as in [Builder.Repeat]: it must use
// its own Builder, returns values of the types and shapes of state, and no gradient passes through it. It can repeat, but not
// contain another When.
//
// The part is a loop of the runtime with one iteration or none, also where [Builder.Repeat] does without a loop.
func (b *Builder) When(flag string, state []onnx.Value, body func(b *Builder, state []onnx.Value) []onnx.Value) []onnx.Value {
	if b.flag != "" {
		b.fail("when %q inside when %q", flag, b.flag)
	}
	return b.loop(b.Cast(b.Planned(flag), onnx.Int64), b.times, flag, state, func(b *Builder, _ onnx.Value, state []onnx.Value) []onnx.Value {
		return b.same(state, body(b, state))
	})
}

// same returns the values after an iteration, which must have the types and shapes of those before it.
func (b *Builder) same(before, after []onnx.Value) []onnx.Value {
	if len(after) != len(before) {
		b.fail("repeat: %d state tensors after an iteration, want %d", len(after), len(before))
	}
	for k, v := range after {
		if v.DType != before[k].DType || !slices.Equal(v.Dims, before[k].Dims) {
			b.fail("repeat: state tensor %d has shape %v after an iteration, want %v", k+1, v.Dims, before[k].Dims)
		}
	}
	return after
}
