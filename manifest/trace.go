package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Trace holds the solver's curves of one item. All slices have one entry per step, in the order of the steps. The JSON
// form is one object: timestep, and the curves by name in their order.
type Trace struct {
	// Timestep is the prior's time index t of each step.
	Timestep []int
	// Curves are those that the method declares; see ddiff methods.
	Curves []Curve
}

// Curve is one value per step.
type Curve struct {
	Name   string
	Values []float64
}

// Curve returns the values of a curve, nil for an unknown name.
func (t *Trace) Curve(name string) []float64 {
	for _, c := range t.Curves {
		if c.Name == name {
			return c.Values
		}
	}
	return nil
}

// MarshalJSON keeps the order of the curves.
func (t Trace) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	data, err := json.Marshal(t.Timestep)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, `{"timestep":%s`, data)
	for _, c := range t.Curves {
		if data, err = json.Marshal(c.Values); err != nil {
			return nil, fmt.Errorf("curve %s: %w", c.Name, err)
		}
		fmt.Fprintf(&out, ",%s:%s", quoteJSON(c.Name), data)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON keeps the order of the curves.
func (t *Trace) UnmarshalJSON(data []byte) error {
	*t = Trace{}
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(errors.New("trace is not a JSON object"), err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the decoder accepts no other key
		c := Curve{Name: name}
		if name == "timestep" {
			err = d.Decode(&t.Timestep)
		} else {
			err = d.Decode(&c.Values)
			t.Curves = append(t.Curves, c)
		}
		if err != nil {
			return fmt.Errorf("curve %s: %w", name, err)
		}
	}
	_, err := d.Token()
	return err
}
