package report

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// A small report needs no temporary directory.
func TestTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	store := memoryFiles{}
	results := func(yield func(manifest.Result, error) bool) {
		r := manifest.Result{Item: manifest.Item{ID: "a", Name: "one", Task: "hdr", Method: "ddiff"}, Outcome: manifest.OutcomeFailed}
		yield(r, nil)
	}
	if _, err := Write(t.Context(), store, Campaign{Select: selection.First}, results); err != nil {
		t.Errorf("small report: %v", err)
	}
	if csv := string(store[KeyCSV]); !strings.Contains(csv, "one") {
		t.Errorf("results.csv is %q", csv)
	}
}

// memoryFiles is a store in memory.
type memoryFiles map[string][]byte

func (m memoryFiles) Get(_ context.Context, key string) ([]byte, error) {
	if data, ok := m[key]; ok {
		return data, nil
	}
	return nil, errors.New("missing")
}

func (m memoryFiles) Put(_ context.Context, key string, data []byte) error {
	m[key] = bytes.Clone(data)
	return nil
}
