package parameter

import (
	"encoding/json"
	"fmt"
)

// Value is the value of a parameter: a word, or a number if Word is empty.
type Value struct {
	Number float64
	Word   string
}

// Number returns a numeric value.
func Number(x float64) Value { return Value{Number: x} }

// Word returns a value in a word.
func Word(s string) Value { return Value{Word: s} }

// MarshalJSON writes a JSON number or string.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Word != "" {
		return json.Marshal(v.Word)
	}
	return json.Marshal(v.Number)
}

// UnmarshalJSON reads a JSON number or non-empty string.
func (v *Value) UnmarshalJSON(data []byte) error {
	*v = Value{}
	switch {
	case string(data) == "null" || string(data) == `""`:
		return fmt.Errorf("%s is neither a number nor a word", data)
	case data[0] == '"':
		return json.Unmarshal(data, &v.Word)
	}
	return json.Unmarshal(data, &v.Number)
}

// String returns the value as campaign files write it.
func (v Value) String() string {
	if v.Word != "" {
		return v.Word
	}
	return fmt.Sprintf("%g", v.Number)
}
