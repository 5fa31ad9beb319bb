package modelfile

import (
	"fmt"
	"strconv"
	"strings"

	"ddiff/internal/restore/onnx/infer"
)

// Port describes an input or output of a Model. A free dimension is −1 in Dims and has a name, perhaps "", in DimNames.
type Port struct {
	Name     string
	DType    infer.DType
	Dims     []int
	DimNames []string
}

// Dim returns a dimension as text: its length, or its name if it is free.
func (p Port) Dim(i int) string {
	if p.Dims[i] >= 0 {
		return strconv.Itoa(p.Dims[i])
	}
	return p.DimNames[i]
}

// Text returns the dimensions as text, as in "[N, 3, 256, W]".
func (p Port) Text() string {
	all := make([]string, len(p.Dims))
	for i := range all {
		if all[i] = p.Dim(i); all[i] == "" {
			all[i] = "?"
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Bind checks the shape of an input's values and records the lengths of named dimensions.
func (p Port) Bind(shape []int, lengths map[string]int) error {
	if len(shape) != len(p.Dims) {
		return fmt.Errorf("input %s has %d dimensions, got the shape %v", p.Name, len(p.Dims), shape)
	}
	for i, n := range shape {
		name := p.DimNames[i]
		switch old, ok := lengths[name]; {
		case p.Dims[i] >= 0 && p.Dims[i] != n:
			return fmt.Errorf("input %s has the dimensions %s, got the shape %v", p.Name, p.Text(), shape)
		case p.Dims[i] >= 0 || name == "":
		case ok && old != n:
			return fmt.Errorf("input %s has the dimensions %s, but %s is %d in another input", p.Name, p.Text(), name, old)
		default:
			lengths[name] = n
		}
	}
	return nil
}

// Shape evaluates the dimensions. A name may be NAME, NAME/NUMBER or NAME*NUMBER with the name of a length.
func (p Port) Shape(lengths map[string]int) ([]int, error) {
	out := make([]int, len(p.Dims))
	for i, n := range p.Dims {
		if n < 0 {
			var err error
			if n, err = evaluateDimension(p.DimNames[i], lengths); err != nil {
				return nil, fmt.Errorf("the dimension %q of %s does not follow from the inputs", p.Dim(i), p.Name)
			}
		}
		out[i] = n
	}
	return out, nil
}

// evaluateDimension evaluates NAME, NAME/NUMBER or NAME*NUMBER.
func evaluateDimension(text string, lengths map[string]int) (int, error) {
	name, factor, times := strings.Cut(text, "*")
	name, divisor, over := strings.Cut(name, "/")
	n, ok := lengths[name]
	if !ok || name == "" {
		return 0, fmt.Errorf("no dimension %q", name)
	}
	if times {
		k, err := strconv.Atoi(factor)
		if err != nil || k < 1 {
			return 0, fmt.Errorf("factor %q", factor)
		}
		n *= k
	}
	if over {
		k, err := strconv.Atoi(divisor)
		if err != nil || k < 1 || n%k != 0 {
			return 0, fmt.Errorf("divisor %q of %d", divisor, n)
		}
		n /= k
	}
	return n, nil
}
