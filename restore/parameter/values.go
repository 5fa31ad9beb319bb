package parameter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Values are solver parameters by name, which replace those of a preset.
type Values map[string]Value

// Or returns v with the missing values taken from base. The result shares no memory with either.
func (v Values) Or(base Values) Values {
	if len(v)+len(base) == 0 {
		return nil
	}
	out := Values{}
	maps.Copy(out, base)
	maps.Copy(out, v)
	return out
}

// IsZero reports whether v has no values.
func (v Values) IsZero() bool { return len(v) == 0 }

// firstValues are written before all other names. Campaign ids are digests of this order: never change it.
var firstValues = [...]string{"gamma0", "t_gamma", "a", "b", "t0", "sigma_rule", "gradient"}

// MarshalJSON writes an object with a fixed order of names.
func (v Values) MarshalJSON() ([]byte, error) {
	names := slices.DeleteFunc(slices.Clone(firstValues[:]), func(name string) bool { _, ok := v[name]; return !ok })
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			out.WriteByte(',')
		}
		data, err := v[name].MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		key, _ := json.Marshal(name) // text has a JSON form
		fmt.Fprintf(&out, "%s:%s", key, data)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
