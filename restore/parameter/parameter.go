// Package parameter declares the named settings of operators and methods.
//
// A declaration is the only place that states a setting's range, unit, default and
// documentation: validation, help texts and the command line read it from there.
package parameter

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ErrInvalid: a parameter is unknown or its value is out of range. The message names both.
var ErrInvalid = errors.New("wrong parameter")

// Parameter declares a number in a range, or a text with a fixed set of values.
type Parameter struct {
	// Name is the key in campaign files.
	Name string
	// Doc is one line for people, without a full stop.
	Doc string
	// Unit of the value, such as "pixels at 256". Empty: dimensionless.
	Unit string
	// Default is the value of a number that a campaign leaves out.
	Default float64
	// Min and Max bound a number. Both are finite. Max is allowed.
	Min, Max float64
	// Open excludes Min from the range.
	Open bool
	// Integer: only whole numbers are allowed.
	Integer bool
	// Choices are the values of a text, the default first. Empty: a number.
	Choices []string
}

// Range is the range for people: "[0, 1]", "(0, 64]", "integers in [2, 16]", "ddpm or full".
func (p Parameter) Range() string {
	if len(p.Choices) > 0 {
		return strings.Join(p.Choices, " or ")
	}
	open, kind := "[", ""
	if p.Open {
		open = "("
	}
	if p.Integer {
		kind = "integers in "
	}
	return fmt.Sprintf("%s%s%g, %g]", kind, open, p.Min, p.Max)
}

// Check returns ErrInvalid for a number out of range, which NaN is too.
func (p Parameter) Check(v float64) error {
	if !(v >= p.Min && v <= p.Max) || p.Open && v == p.Min || p.Integer && v != math.Trunc(v) {
		return fmt.Errorf("%w %s: %g is outside %s", ErrInvalid, p.Name, v, p.Range())
	}
	return nil
}

// CheckText returns ErrInvalid for a text that is not one of the choices.
func (p Parameter) CheckText(v string) error {
	if !slices.Contains(p.Choices, v) {
		return fmt.Errorf("%w %s: %q is not %s", ErrInvalid, p.Name, v, p.Range())
	}
	return nil
}

// List holds the parameters of one operator or method in the order of its documentation.
type List []Parameter

// Names lists the parameters' names in the order of the list.
func (l List) Names() []string {
	var out []string
	for _, p := range l {
		out = append(out, p.Name)
	}
	return out
}

// Find returns the parameter with the name.
func (l List) Find(name string) (Parameter, bool) {
	if i := slices.IndexFunc(l, func(p Parameter) bool { return p.Name == name }); i >= 0 {
		return l[i], true
	}
	return Parameter{}, false
}

// Complete returns the given numbers with defaults for the missing ones. It returns ErrInvalid
// for an unknown name and for a number out of range.
func (l List) Complete(given map[string]float64) (map[string]float64, error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := l.Find(name); !ok {
			return nil, fmt.Errorf("%w %s: the parameters are %v", ErrInvalid, name, l.Names())
		}
	}
	out := map[string]float64{}
	for _, p := range l {
		v, ok := given[p.Name]
		if !ok {
			v = p.Default
		}
		if err := p.Check(v); err != nil {
			return nil, err
		}
		out[p.Name] = v
	}
	return out, nil
}
