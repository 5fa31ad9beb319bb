package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"ddiff/restore/item"
)

// DoneRows yields the rows of the finished items of a results.csv, as texts by column. Its last pair has an error if the file is none.
func DoneRows(file io.Reader) iter.Seq2[map[string]string, error] {
	return func(yield func(map[string]string, error) bool) {
		rows := csv.NewReader(file)
		header, err := rows.Read()
		for _, name := range []string{"item", "image", "outcome"} {
			if err == nil && !slices.Contains(header, name) {
				err = errors.New("want the columns item, image and outcome")
			}
		}
		for err == nil {
			var cells []string
			if cells, err = rows.Read(); err != nil {
				break
			}
			row := make(map[string]string, len(header))
			for i, name := range header {
				row[name] = cells[i]
			}
			if row["outcome"] == string(item.OutcomeDone) && !yield(row, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) || header == nil {
			yield(nil, fmt.Errorf("read %s: %w", KeyCSV, err))
		}
	}
}
