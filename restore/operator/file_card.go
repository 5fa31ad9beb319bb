package operator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/parameter"
)

// readMultiple reads ddiff.multiple_of.
func (f *File) readMultiple(card map[string]string) (err error) {
	f.multipleOf = 1
	if text := card[cardPrefix+"multiple_of"]; text != "" {
		if f.multipleOf, err = strconv.Atoi(text); err != nil || f.multipleOf < 1 || f.multipleOf > maxSide {
			return fmt.Errorf("its metadata entry ddiff.multiple_of is %q, want a number from 1 to %d", text, maxSide)
		}
	}
	return nil
}

// readDraw reads the entries of the kernel.
func (f *File) readDraw(card map[string]string) error {
	name, std := card[cardPrefix+"parameter"], card[cardPrefix+"parameter_std"]
	if f.draw == nil {
		if name != "" {
			return fmt.Errorf("its metadata entry ddiff.parameter is %q, no input with a batch has this name", name)
		}
		return nil
	}
	if name != "" && name != f.draw.Name {
		return fmt.Errorf("its metadata entry ddiff.parameter is %q, the input with a batch beside x is %s", name, f.draw.Name)
	}
	f.std = 1
	if std != "" {
		var err error
		if f.std, err = strconv.ParseFloat(std, 64); err != nil || !(f.std > 0) || math.IsInf(f.std, 0) {
			return fmt.Errorf("its metadata entry ddiff.parameter_std is %q, want a number above 0", std)
		}
	}
	return nil
}

// The prefix of the entries that declare parameters.
const paramsPrefix = cardPrefix + "params."

// readParameters reads the declarations of the numbers among the inputs.
func (f *File) readParameters(card map[string]string) error {
	for _, p := range f.scalars {
		text, ok := card[paramsPrefix+p.Name]
		if !ok {
			return fmt.Errorf(`its input %s is a number without a metadata entry; add %s%s = "DEFAULT; [LEAST, LARGEST]; DOCUMENTATION"`,
				p.Name, paramsPrefix, p.Name)
		}
		d, err := declaration(p.Name, text)
		if err != nil {
			return fmt.Errorf("its metadata entry %s%s is %q: %w", paramsPrefix, p.Name, text, err)
		}
		f.Parameters = append(f.Parameters, d)
	}
	for key := range card {
		name, ok := strings.CutPrefix(key, paramsPrefix)
		if ok && !slices.ContainsFunc(f.scalars, func(p modelfile.Port) bool { return p.Name == name }) {
			return fmt.Errorf("its metadata entry %s declares a parameter, no input of rank 0 has this name", key)
		}
	}
	return nil
}

// declaration parses "DEFAULT; RANGE; DOC".
func declaration(name, text string) (parameter.Parameter, error) {
	parts := strings.SplitN(text, ";", 3)
	if len(parts) < 2 {
		return parameter.Parameter{}, fmt.Errorf(`want "DEFAULT; RANGE; DOC", as in "1.2; (0, 8]; gain of the sensor"`)
	}
	p, err := parameter.ParseRange(strings.TrimSpace(parts[1]))
	if err != nil {
		return p, err
	}
	p.Name = name
	if len(parts) == 3 {
		p.Doc = strings.TrimSpace(parts[2])
	}
	if p.Default, err = strconv.ParseFloat(strings.TrimSpace(parts[0]), 64); err != nil {
		return p, fmt.Errorf("the default %q is not a number", strings.TrimSpace(parts[0]))
	}
	if err := p.Test(p.Start()); err != nil {
		return p, fmt.Errorf("the default %w", err)
	}
	return p, nil
}
