package onnx

import (
	"slices"
	"strings"

	"ddiff/internal/restore/onnx/infer"
)

// letters renders labels without ellipsis.
func letters(labels []rune) string {
	var b strings.Builder
	for _, l := range labels {
		if l >= '0' && l <= '9' {
			l += 'A' - '0' // upper case is rare in equations; the rule checks for conflicts
		}
		b.WriteRune(l)
	}
	return b.String()
}

// einsumRule contracts the gradient with the other inputs. Dimensions that only input k has are repeated.
func einsumRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	e, err := infer.ParseEinsum(n)
	if err != nil {
		return Value{}, err
	}
	for _, term := range e.Terms {
		for i, l := range term {
			if slices.Contains(term[:i], l) {
				return Value{}, n.Refuse("a diagonal")
			}
			if l >= 'A' && l <= 'J' {
				if _, clash := e.Lengths[l-'A'+'0']; clash {
					return Value{}, n.Refuse("an ellipsis beside upper-case labels")
				}
			}
		}
	}
	terms, values := []string{letters(e.Output)}, []Value{dy[0]}
	have := slices.Clone(e.Output)
	for i, term := range e.Terms {
		if i != k {
			terms, values, have = append(terms, letters(term)), append(values, n.Inputs[i]), append(have, term...)
		}
	}
	var kept []rune
	full := n.Inputs[k].Dims
	narrow := slices.Clone(full)
	for i, l := range e.Terms[k] {
		if slices.Contains(have, l) {
			kept = append(kept, l)
		} else {
			narrow[i] = 1
		}
	}
	equation := strings.Join(terms, ",") + "->" + letters(kept)
	d := g.op("Einsum", map[string]any{"equation": equation}, values...)
	if len(kept) == len(full) {
		return d, nil
	}
	return g.Expand(g.Reshape(d, narrow...), full...), nil
}
