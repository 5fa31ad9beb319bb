package onnx

import (
	"maps"
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// WatchRules calls seen with the operation of each gradient rule that is used from now on, and returns all operations with a
// rule.
func WatchRules(seen func(op string)) (all []string) {
	for _, family := range families() {
		for op, r := range family {
			all = append(all, op)
			family[op] = func(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
				dx, err := r(g, n, k, dy)
				if err == nil {
					seen(op)
				}
				return dx, err
			}
		}
	}
	return all
}

// RuleFamilies returns the operations with a gradient rule by family, and of those with the derivative zero.
func RuleFamilies() map[string][]string {
	out := map[string][]string{}
	for name, family := range map[string]map[string]rule{
		"Arithmetic": arithmeticRules, "Functions": functionRules, "Products of matrices": linearRules, "Layers": networkRules,
		"Reductions": reductionRules, "Shapes": shapeRules, "Look-ups": gatherRules,
	} {
		out[name] = slices.Sorted(maps.Keys(family))
	}
	return out
}

// ApplyAll appends an operation with several outputs.
func (g *Graph) ApplyAll(op string, t DType, dims [][]int, attrs map[string]any, inputs ...Value) []Value {
	out := make([]Value, len(dims))
	for i, d := range dims {
		out[i] = g.declare(g.fresh(op), t, d)
	}
	g.record(op, attrs, inputs, out)
	return out
}
