// Package parameter declares the named settings of operators and methods, and the values and precisions that campaign files
// and solvers share.
//
// A declaration is the only place that states a setting's range, unit, default and
// documentation: validation, help texts and the command line read it from there.
package parameter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/failure"
)

// ErrInvalid: a parameter is unknown or its value is out of range. The message names both.
var ErrInvalid = failure.New(failure.Input, "wrong parameter")

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
	// Schedule: the value may also be several numbers in a word, separated by spaces, at equal distances over the steps of a run; see [Value.At].
	Schedule bool
	// Choices are the values of a text, the default first. Empty: a number.
	Choices []string
	// Time: the number is an index of the prior's schedule, an integer from 0 to its length T. See [Parameter.Of].
	Time bool
	// With names choices as "NAME=WORD", of parameters before this one in the list: this parameter exists only where one of them is made. Empty: always.
	With []string
	// Off documents the effect of the word [None] in a few words. Empty: the word is not accepted.
	Off string
}

// None is the word for T−1, the first time of a run: it disables an effect at times above the parameter's.
const None = "none"

// maxTime bounds time indices while the schedule is unknown; no schedule is longer.
const maxTime = 100_000

// Of returns the parameter with the range of a time index narrowed to a schedule of length total.
func (p Parameter) Of(total int) Parameter {
	if p.Time {
		p.Max = float64(total)
	}
	return p
}

// Kind is "number", "integer", "time" or "choice".
func (p Parameter) Kind() string {
	switch {
	case len(p.Choices) > 0:
		return "choice"
	case p.Time:
		return "time"
	case p.Integer:
		return "integer"
	}
	return "number"
}

// Start is the default as a value.
func (p Parameter) Start() Value {
	if len(p.Choices) > 0 {
		return Word(p.Choices[0])
	}
	return Number(p.Default)
}

// Words lists the accepted words.
func (p Parameter) Words() []string {
	if p.Off != "" {
		return []string{None}
	}
	return p.Choices
}

// Range is the range for people: "[0, 1]", "(0, 64]", "integers in [2, 16]", "integers in [0, T] or none",
// "ddpm or full".
func (p Parameter) Range() string {
	if len(p.Choices) > 0 {
		return strings.Join(p.Choices, " or ")
	}
	open, kind, top, word := "[", "", fmt.Sprintf("%g", p.Max), ""
	if p.Open {
		open = "("
	}
	if p.Integer || p.Time {
		kind = "integers in "
	}
	if p.Time && p.Max == 0 {
		top = "T"
	}
	if p.Off != "" {
		word = " or " + None
	}
	if p.Schedule {
		word = `, or several, as in "8 4 1"`
	}
	return fmt.Sprintf("%s%s%g, %s]%s", kind, open, p.Min, top, word)
}

// Check returns ErrInvalid for a number out of range, which NaN is too, and for a word that the parameter does not accept.
func (p Parameter) Check(v Value) error {
	if err := p.Test(v); err != nil {
		return fmt.Errorf("%w %s: %w", ErrInvalid, p.Name, err)
	}
	return nil
}

// Test is Check with an error that names the value and the range, but not the parameter.
func (p Parameter) Test(v Value) error {
	x, top := v.Number, p.Max
	if p.Time && top == 0 {
		top = maxTime
	}
	switch {
	case v.Word != "" && slices.Contains(p.Words(), v.Word):
		return nil
	case len(p.Choices) > 0:
		return fmt.Errorf("%v is not %s", v, p.Range())
	case p.Schedule && strings.ContainsAny(v.Word, " 	"):
		numbers, err := v.numbers()
		for _, one := range numbers {
			if err == nil {
				err = p.Test(Number(one))
			}
		}
		return err
	case v.Word != "":
		return fmt.Errorf("%q is a text, want %s", v.Word, p.Range())
	case !(x >= p.Min && x <= top), p.Open && x == p.Min, (p.Integer || p.Time) && x != math.Trunc(x):
		return fmt.Errorf("%v is outside %s", v, p.Range())
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

// Of returns the parameters with the ranges of time indices narrowed to a schedule of length total.
func (l List) Of(total int) List {
	out := slices.Clone(l)
	for i, p := range out {
		out[i] = p.Of(total)
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

// Complete returns the given numbers with defaults for the missing ones. It returns ErrInvalid for an unknown name and for a number out of range.
func (l List) Complete(given map[string]float64) (map[string]float64, error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := l.Find(name); !ok && len(l) == 0 {
			return nil, fmt.Errorf("%w %s: there is no parameter", ErrInvalid, name)
		} else if !ok {
			return nil, fmt.Errorf("%w %s: the parameters are %v", ErrInvalid, name, l.Names())
		}
	}
	out := map[string]float64{}
	for _, p := range l {
		v, ok := given[p.Name]
		if !ok {
			v = p.Default
		}
		if err := p.Check(Number(v)); err != nil {
			return nil, err
		}
		out[p.Name] = v
	}
	return out, nil
}

// ParseRange returns a number's range from the form of [Parameter.Range]: "[0, 1]", "(0, 64]" or "integers in [2, 16]". The
// bounds are finite.
func ParseRange(text string) (Parameter, error) {
	p := Parameter{}
	rest, integer := strings.CutPrefix(text, "integers in ")
	p.Integer = integer
	rest, p.Open = strings.CutPrefix(rest, "(")
	if !p.Open {
		rest, _ = strings.CutPrefix(rest, "[")
	}
	rest, closed := strings.CutSuffix(rest, "]")
	least, largest, ok := strings.Cut(rest, ",")
	lo, err := strconv.ParseFloat(strings.TrimSpace(least), 64)
	hi, err2 := strconv.ParseFloat(strings.TrimSpace(largest), 64)
	opened := strings.ContainsAny(text, "[(")
	if !ok || !closed || !opened || err != nil || err2 != nil || !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return p, fmt.Errorf("the range %q is none of [LEAST, LARGEST], (LEAST, LARGEST] and integers in [LEAST, LARGEST]", text)
	}
	p.Min, p.Max = lo, hi
	return p, nil
}
