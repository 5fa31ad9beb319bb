package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readJSONL reads a list with one JSON object per line, with the columns of a CSV list as keys. A null
// counts as an absent key.
func readJSONL(l *lines, emit func(Row) error) error {
	for {
		text, ok := l.next()
		if !ok {
			return l.err()
		}
		fields, key, err := parseObject(text, l.Columns)
		var row Row
		if err != nil {
			row = l.bad(key, err)
		} else {
			row = l.row(fields)
		}
		if err := emit(row); err != nil {
			return err
		}
	}
}

// parseObject parses one flat JSON object. Key is the key of the error. The values of ignored keys are arbitrary.
func parseObject(text string, columns map[string]string) (fields []Field, key string, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if start, err := dec.Token(); err != nil {
		return nil, "", notJSON(err)
	} else if start != json.Delim('{') {
		return nil, "", errors.New(`want a JSON object, as in {"image": "a.png"}`)
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, "", notJSON(err)
		}
		key := token.(string) // the decoder accepts only strings as keys
		fills, err := rowColumns(columns, key)
		if err != nil {
			return nil, "", err
		}
		if seen[key] {
			return nil, key, errors.New("is repeated; remove one")
		}
		seen[key] = true
		if len(fills) == 0 {
			var passed json.RawMessage
			if err := dec.Decode(&passed); err != nil {
				return nil, key, notJSON(err)
			}
			continue
		}
		value, err := dec.Token()
		if err != nil {
			return nil, key, notJSON(err)
		}
		for _, column := range fills {
			text, err := fieldText(column, value)
			if err != nil {
				return nil, key, err
			}
			fields = append(fields, Field{column, text})
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, "", notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, "", errors.New("has text after the object; write one object per line")
	}
	return fields, "", nil
}

// fieldText checks the type of a value: a number for numeric columns, text for the others.
func fieldText(column string, value json.Token) (string, error) {
	numeric := IsNumeric(column)
	switch v := value.(type) {
	case nil:
		return "", nil
	case json.Number:
		if numeric {
			return v.String(), nil
		}
	case string:
		if !numeric || column == "sigma" && v == sigmaWord {
			return v, nil
		}
	}
	if numeric {
		return "", errors.New("want a number")
	}
	return "", errors.New("want text in quotes")
}

// IsNumeric reports whether a column of a row holds numbers.
func IsNumeric(column string) bool {
	return slices.Contains([]string{"sigma", "photons", "seed", "width", "height"}, column) || strings.HasPrefix(column, paramPrefix)
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("not valid JSON: %w", err)
}
