package onnx

import (
	"fmt"
	"slices"
	"strings"
)

// einsum is the parsed equation of an Einsum. Each dimension has a label.
type einsum struct {
	terms   [][]rune
	output  []rune
	lengths map[rune]int
}

// parseEinsum reads the equation of n. The dimensions of an ellipsis get labels of their own.
func parseEinsum(n *node) (einsum, error) {
	equation := strings.ReplaceAll(n.text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	parts := strings.Split(left, ",")
	e := einsum{lengths: map[rune]int{}}
	if len(parts) != len(n.inputs) {
		return e, fmt.Errorf("%w: equation %q for %d inputs", ErrShape, equation, len(n.inputs))
	}
	var rest []rune
	count := map[rune]int{}
	for i, part := range parts {
		labels := []rune(part)
		if before, after, ok := strings.Cut(part, "..."); ok {
			hidden := make([]rune, n.inputs[i].Rank()-len(before)-len(after))
			for j := range hidden {
				hidden[j] = rune('0' + len(hidden) - 1 - j) // counted from the right, as in broadcasting
			}
			if len(hidden) > len(rest) {
				rest = hidden
			}
			labels = slices.Concat([]rune(before), hidden, []rune(after))
		}
		if len(labels) != n.inputs[i].Rank() {
			return e, misfit(n)
		}
		for j, l := range labels {
			d := n.inputs[i].Dims[j]
			if old, ok := e.lengths[l]; ok && old != d {
				return e, misfit(n)
			}
			e.lengths[l] = d
			count[l]++
		}
		e.terms = append(e.terms, labels)
	}
	if explicit {
		before, after, ok := strings.Cut(right, "...")
		if !ok {
			e.output = []rune(right)
		} else {
			e.output = slices.Concat([]rune(before), rest, []rune(after))
		}
		return e, nil
	}
	for l, times := range count {
		if times == 1 && !slices.Contains(rest, l) {
			e.output = append(e.output, l)
		}
	}
	slices.Sort(e.output)
	e.output = append(slices.Clone(rest), e.output...)
	return e, nil
}
