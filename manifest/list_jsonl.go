package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonl reads a list with one JSON object per line, whose keys are the columns of a CSV
// list. A null is a key that is not set.
func (s *stream) jsonl(l *lines, base string) error {
	for {
		text, ok := l.next()
		if !ok {
			return l.err()
		}
		if err := s.emit(jsonlRow(l, base, text)); err != nil {
			return err
		}
	}
}

func jsonlRow(l *lines, base, text string) Row {
	cells, field, err := parseObject(text)
	if err != nil {
		return Row{Name: fmt.Sprintf("line-%d", l.line), Err: l.problem(field, err)}
	}
	return record(l, base, cells)
}

// parseObject reads one flat JSON object. Field is the key that an error is about.
func parseObject(text string) (cells []cell, field string, err error) {
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
		key := token.(string) // the decoder lets only strings be keys
		if err := checkColumn(key); err != nil {
			return nil, "", err
		}
		if seen[key] {
			return nil, key, errors.New("is repeated; remove one")
		}
		seen[key] = true
		value, err := dec.Token()
		if err != nil {
			return nil, key, notJSON(err)
		}
		text, err := cellText(key, value)
		if err != nil {
			return nil, key, err
		}
		cells = append(cells, cell{key, text})
	}
	if _, err := dec.Token(); err != nil {
		return nil, "", notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, "", errors.New("has more after the object; write one object per line")
	}
	return cells, "", nil
}

// cellText checks the type of a value: numbers for numeric columns, text for the others.
func cellText(key string, value json.Token) (string, error) {
	numeric := key == "sigma" || key == "seed" || strings.HasPrefix(key, paramPrefix)
	switch v := value.(type) {
	case nil:
		return "", nil
	case json.Number:
		if numeric {
			return v.String(), nil
		}
	case string:
		if !numeric {
			return v, nil
		}
	}
	if numeric {
		return "", errors.New("want a number")
	}
	return "", errors.New("want text in quotes")
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("not valid JSON: %w", err)
}
