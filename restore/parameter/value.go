package parameter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Value is the value of a parameter: a word, or a number if Word is empty.
type Value struct {
	Number float64
	Word   string
}

// Number returns a numeric value.
func Number(x float64) Value { return Value{Number: x} }

// Word returns a value in a word, of which several numbers have one spelling: results are found by it.
func Word(s string) Value {
	v := Value{Word: s}
	numbers, err := v.numbers()
	if err != nil || len(numbers) < 2 {
		return v
	}
	var texts []string
	for _, x := range numbers {
		texts = append(texts, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return Value{Word: strings.Join(texts, " ")}
}

// numbers reads the numbers of a word.
func (v Value) numbers() (out []float64, err error) {
	for text := range strings.FieldsSeq(v.Word) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%q in %q is not a number", text, v.Word)
		}
		out = append(out, x)
	}
	return out, nil
}

// At returns the number, or, of several in a word, that at a share of the run from 0 to 1: the first one is that of the first step, the last one that of the last
// step, with straight lines between neighbours.
func (v Value) At(share float64) float64 {
	numbers, err := v.numbers()
	if err != nil || len(numbers) == 0 {
		return v.Number
	}
	at := share * float64(len(numbers)-1)
	i := min(int(at), len(numbers)-1)
	next := min(i+1, len(numbers)-1)
	return numbers[i] + float64((at-float64(i))*(numbers[next]-numbers[i])) // never fused: all processors return the same bits
}

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
		var word string
		if err := json.Unmarshal(data, &word); err != nil {
			return err
		}
		*v = Word(word)
		return nil
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
