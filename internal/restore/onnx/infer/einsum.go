package infer

import (
	"fmt"
	"slices"
	"strings"
)

// Einsum is the parsed equation of an Einsum. Each dimension has a label.
type Einsum struct {
	Terms   [][]rune
	Output  []rune
	Lengths map[rune]int
}

// ParseEinsum reads the equation of n. The dimensions of an ellipsis get labels of their own.
func ParseEinsum(n *Node) (Einsum, error) {
	equation := strings.ReplaceAll(n.Text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	parts := strings.Split(left, ",")
	e := Einsum{Lengths: map[rune]int{}}
	if len(parts) != len(n.Inputs) {
		return e, fmt.Errorf("%w: equation %q for %d inputs", ErrShape, equation, len(n.Inputs))
	}
	var rest []rune
	count := map[rune]int{}
	for i, part := range parts {
		labels := []rune(part)
		if before, after, ok := strings.Cut(part, "..."); ok {
			hidden := make([]rune, n.Inputs[i].Rank()-len(before)-len(after))
			for j := range hidden {
				hidden[j] = rune('0' + len(hidden) - 1 - j) // counted from the right, as in broadcasting
			}
			if len(hidden) > len(rest) {
				rest = hidden
			}
			labels = slices.Concat([]rune(before), hidden, []rune(after))
		}
		if len(labels) != n.Inputs[i].Rank() {
			return e, misfit(n)
		}
		for j, l := range labels {
			d := n.Inputs[i].Dims[j]
			if old, ok := e.Lengths[l]; ok && old != d {
				return e, misfit(n)
			}
			e.Lengths[l] = d
			count[l]++
		}
		e.Terms = append(e.Terms, labels)
	}
	if explicit {
		before, after, ok := strings.Cut(right, "...")
		if !ok {
			e.Output = []rune(right)
		} else {
			e.Output = slices.Concat([]rune(before), rest, []rune(after))
		}
		return e, nil
	}
	for l, times := range count {
		if times == 1 && !slices.Contains(rest, l) {
			e.Output = append(e.Output, l)
		}
	}
	slices.Sort(e.Output)
	e.Output = append(slices.Clone(rest), e.Output...)
	return e, nil
}
