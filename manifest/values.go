package manifest

import (
	"encoding/json"
	"maps"

	"ddiff/restore/parameter"
)

// Value is the value of a solver parameter: a word, or a number if Word is empty.
type Value = parameter.Value

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

// MarshalJSON writes an object, also for nil.
func (v Values) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]Value(v))
}
