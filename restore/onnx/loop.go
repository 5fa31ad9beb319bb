package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/onnxpb"
)

// Loop repeats body trip times, an int64 value of shape [1]. body builds one iteration in b from the index i (int64, rank
// 0) and the state; it may use values of g. It returns the next state and the values to collect. Loop returns the final
// state and the collected values, stacked along a new first dimension of length trip, which is −1 in Dims.
func (g *Graph) Loop(trip Value, state []Value, body func(b *Graph, i Value, state []Value) (next, collect []Value)) (final, collected []Value) {
	b := g.Sub()
	i := b.Input(g.fresh("i"), Int64)
	cond := b.Input(g.fresh("cond"), Bool)
	inner := make([]Value, len(state))
	for k, s := range state {
		inner[k] = b.Input(g.fresh("state"), s.DType, s.Dims...)
	}
	next, collect := body(b, i, inner)

	b.outputs = append(b.outputs, b.identity(cond))
	for _, v := range slices.Concat(next, collect) {
		// Outputs need names of their own, also inputs, constants and values that occur twice.
		b.outputs = append(b.outputs, b.identity(v))
	}

	for _, v := range next {
		final = append(final, g.declare(g.fresh("final"), v.DType, v.Dims))
	}
	for _, v := range collect {
		collected = append(collected, g.declare(g.fresh("collected"), v.DType, append([]int{-1}, v.Dims...)))
	}
	inputs := append([]string{trip.Name, ""}, Names(state)...)
	g.emit("Loop", inputs, Names(slices.Concat(final, collected)), &onnxpb.AttributeProto{
		Name: "body", Type: onnxpb.AttributeProto_GRAPH, G: b.proto("body"),
	})
	return final, collected
}

// identity returns a copy of v, which may be a value of a graph around g.
func (g *Graph) identity(v Value) Value { return g.op("Identity", nil, v) }
