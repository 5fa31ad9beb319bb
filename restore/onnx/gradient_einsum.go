package onnx

import (
	"slices"
	"strings"
)

// letters renders labels without ellipsis.
func letters(labels []rune) string {
	var b strings.Builder
	for _, l := range labels {
		if l >= '0' && l <= '9' {
			l += 'A' - '0' // upper case is rare in equations; parseEinsum's callers check for conflicts
		}
		b.WriteRune(l)
	}
	return b.String()
}

// einsumRule contracts the gradient with the other inputs. Dimensions that only input k has are repeated.
func einsumRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	e, err := parseEinsum(n)
	if err != nil {
		return Value{}, err
	}
	for _, term := range e.terms {
		for i, l := range term {
			if slices.Contains(term[:i], l) {
				return Value{}, n.refuse("a diagonal")
			}
			if l >= 'A' && l <= 'J' {
				if _, clash := e.lengths[l-'A'+'0']; clash {
					return Value{}, n.refuse("an ellipsis beside upper-case labels")
				}
			}
		}
	}
	terms, values := []string{letters(e.output)}, []Value{dy[0]}
	have := slices.Clone(e.output)
	for i, term := range e.terms {
		if i != k {
			terms, values, have = append(terms, letters(term)), append(values, n.inputs[i]), append(have, term...)
		}
	}
	var kept []rune
	var dims []int
	full := n.inputs[k].Dims
	narrow := slices.Clone(full)
	for i, l := range e.terms[k] {
		if slices.Contains(have, l) {
			kept, dims = append(kept, l), append(dims, full[i])
		} else {
			narrow[i] = 1
		}
	}
	equation := strings.Join(terms, ",") + "->" + letters(kept)
	d := g.Apply("Einsum", dy[0].DType, dims, map[string]any{"equation": equation}, values...)
	if len(kept) == len(full) {
		return d, nil
	}
	return g.Expand(g.Reshape(d, narrow...), full...), nil
}
