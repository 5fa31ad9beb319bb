package method

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/failure"
	"ddiff/restore/parameter"
)

// ErrSetting reports an unknown method, preset or parameter, or a value out of range. The message names the setting.
var ErrSetting = failure.New(failure.Input, "solver setting")

// Settings are a method with the values of its parameters. The JSON form is one object: method, steps and the
// parameters in their declared order. That form is part of an item's identity.
type Settings struct {
	Method string
	// Steps is the number of steps, from 2 to T or [Info.MaxSteps]. [Run.Cost] has the network evaluations of a step.
	Steps  int
	Values []Setting
}

// Setting is the value of one parameter.
type Setting struct {
	Name  string
	Value parameter.Value
}

// Value returns the value of a parameter, the zero value for a name that the settings do not have.
func (s Settings) Value(name string) parameter.Value {
	for _, v := range s.Values {
		if v.Name == name {
			return v.Value
		}
	}
	return parameter.Value{}
}

// Number returns a number or time index.
func (s Settings) Number(name string) float64 { return s.Value(name).Number }

// At returns a number at a step from 0, see [parameter.Value.At].
func (s Settings) At(name string, step int) float64 {
	return s.Value(name).At(float64(step) / float64(max(1, s.Steps-1)))
}

// Word returns the value of a choice.
func (s Settings) Word(name string) string { return s.Value(name).Word }

// With returns a copy with another value of one parameter, which is appended if it is new.
func (s Settings) With(name string, v parameter.Value) Settings {
	s.Values = slices.Clone(s.Values)
	for i := range s.Values {
		if s.Values[i].Name == name {
			s.Values[i].Value = v
			return s
		}
	}
	s.Values = append(s.Values, Setting{name, v})
	return s
}

// MarshalJSON writes the settings in their order.
func (s Settings) MarshalJSON() ([]byte, error) {
	names, values := []string{"method", "steps"}, []any{s.Method, s.Steps}
	for _, v := range s.Values {
		names, values = append(names, v.Name), append(values, v.Value)
	}
	out := []byte("{")
	for i, name := range names {
		data, err := json.Marshal(values[i])
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrSetting, name, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name) // a string always has a JSON form
		out = append(append(append(out, key...), ':'), data...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads the settings and keeps their order. Check tests the values.
func (s *Settings) UnmarshalJSON(data []byte) error {
	*s = Settings{}
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(errors.New("settings are not a JSON object"), err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		var v Setting
		v.Name, _ = token.(string) // the decoder accepts no other key
		switch v.Name {
		case "method":
			err = d.Decode(&s.Method)
		case "steps":
			err = d.Decode(&s.Steps)
		default:
			err = d.Decode(&v.Value)
			s.Values = append(s.Values, v)
		}
		if err != nil {
			return fmt.Errorf("setting %s: %w", v.Name, err)
		}
	}
	_, err := d.Token()
	return err
}

// Has reports whether the choices that the settings make have a parameter, see [parameter.Parameter.With].
func (s Settings) Has(p parameter.Parameter) bool {
	return len(p.With) == 0 || slices.ContainsFunc(p.With, func(choice string) bool {
		name, word, _ := strings.Cut(choice, "=")
		return s.Word(name) == word
	})
}

// Lacks returns why these settings of the method m do not have a parameter of it, or "".
func (s Settings) Lacks(m Info, name string) string {
	p, _ := m.Parameters.Find(name)
	if s.Has(p) {
		return ""
	}
	var made, remedies []string
	for _, choice := range p.With {
		owner, word, _ := strings.Cut(choice, "=")
		if reason := s.Lacks(m, owner); reason != "" {
			return strings.Replace(reason, "leave "+owner, "leave "+name, 1)
		}
		made, remedies = append(made, owner+": "+s.Word(owner)), append(remedies, owner+": "+word)
	}
	return fmt.Sprintf("with %s; set %s, or leave %s out", strings.Join(made, " and "), strings.Join(remedies, " or "), name)
}

// Check tests that the settings are complete and valid for a method and a schedule of total time indices. The error
// wraps ErrSetting and names the setting.
func (s Settings) Check(m Info, total int) error {
	if s.Method != m.Name {
		return fmt.Errorf("%w method: %q, want %q", ErrSetting, s.Method, m.Name)
	}
	if m.MaxSteps > 0 && (s.Steps < 2 || s.Steps > m.MaxSteps) {
		return fmt.Errorf("%w steps: %d is out of range, want 2 to %d for method %s", ErrSetting, s.Steps, m.MaxSteps, m.Name)
	}
	if m.MaxSteps == 0 && (s.Steps < 2 || s.Steps > total) {
		return fmt.Errorf("%w steps: %d is out of range, want 2 to %d, the length of the prior's schedule", ErrSetting, s.Steps, total)
	}
	known := 0
	for _, p := range m.Parameters {
		i := slices.IndexFunc(s.Values, func(v Setting) bool { return v.Name == p.Name })
		switch {
		case i < 0 && !s.Has(p):
			continue
		case i < 0:
			return fmt.Errorf("%w %s: is missing", ErrSetting, p.Name)
		case !s.Has(p):
			return fmt.Errorf("%w %s: has no effect %s", ErrSetting, p.Name, s.Lacks(m, p.Name))
		}
		known++
		if err := p.Of(total).Test(s.Values[i].Value); err != nil {
			return fmt.Errorf("%w %s: %w", ErrSetting, p.Name, err)
		}
	}
	if len(s.Values) != known {
		return fmt.Errorf("%w: %d parameters, %s has %d", ErrSetting, len(s.Values), m.Name, known)
	}
	return nil
}
