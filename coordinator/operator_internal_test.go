package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/restore/item"
	"ddiff/storage"
)

// operatorFile returns a valid operator file. Files with different notes have different digests.
func operatorFile(t *testing.T, note string) (data []byte, sha string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "restore", "operator", "testdata", "bkse.onnx"))
	must(t, err)
	if note != "" { // doc_string of the model: field 6 with a length
		data = append(data, 6<<3|2, byte(len(note)))
		data = append(data, note...)
	}
	return data, regular.SHA256(data)
}

// operatorRunner returns a runner on a board, whose campaign has operator files at paths, submitted with records.
func operatorRunner(t *testing.T, log *strings.Builder, paths []string, records ...record.OperatorFile) *runner {
	t.Helper()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, log)
	r.rec.Spec.Tasks, r.rec.Operators = nil, records
	for i, path := range paths {
		r.rec.Spec.Tasks = append(r.rec.Spec.Tasks, item.Task{Name: fmt.Sprint("blur", i), Operator: path})
	}
	r.rec.ID = r.rec.Spec.ID("")
	r.id = r.rec.ID
	return r.onBoard(t)
}

// writeFile writes a file of a test and returns its path.
func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o644))
	return path
}

// TestOperatorsAreCopied: the first start copies each operator file into the store and records it. Later starts read the copies,
// so that a changed or removed file does not change a campaign. A lost copy is written again.
func TestOperatorsAreCopied(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	folder, ctx := t.TempDir(), t.Context()
	first, firstSHA := operatorFile(t, "")
	second, secondSHA := operatorFile(t, "second")
	a, b := writeFile(t, filepath.Join(folder, "a.onnx"), first), writeFile(t, filepath.Join(folder, "b.onnx"), second)
	r := operatorRunner(t, &log, []string{a, b, a})
	open := func(name string) (revision uint64) {
		t.Helper()
		if err := r.openOperators(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, want := range []string{firstSHA, secondSHA} {
			path := []string{a, b}[i]
			if f := r.models.catalogue.Files[path]; f == nil || f.SHA256 != want {
				t.Errorf("%s: %s is %+v", name, path, f)
			}
		}
		for _, task := range []string{"blur0", "blur1", "blur2", "hdr"} {
			if _, err := r.models.catalogue.Operators.Parameters(task, nil); err != nil {
				t.Errorf("%s: task %s: %v", name, task, err)
			}
		}
		c, revision, err := board.ReadRevision(ctx, r.s.cfg.Board, r.id)
		must(t, err)
		want := []record.OperatorFile{{Path: a, Key: priorKey(firstSHA), SHA256: firstSHA}, {Path: b, Key: priorKey(secondSHA), SHA256: secondSHA}}
		if fmt.Sprint(c.Operators) != fmt.Sprint(want) {
			t.Errorf("%s: operators %+v, want %+v", name, c.Operators, want)
		}
		for i, data := range [][]byte{first, second} {
			if stored, err := r.s.cfg.Store.Get(ctx, want[i].Key); err != nil || string(stored) != string(data) {
				t.Errorf("%s: the store has %d bytes of operator %d, %v", name, len(stored), i, err)
			}
		}
		return revision
	}
	begin := open("first start")
	writeFile(t, a, second)
	must(t, os.Remove(b))
	if revision := open("later start"); revision != begin {
		t.Error("the record was written without a change")
	}
	if strings.Contains(log.String(), "missing from the store") {
		t.Errorf("log %s", log.String())
	}

	lose := func() {
		t.Helper()
		must(t, r.s.cfg.Store.Delete(ctx, priorKey(firstSHA)))
	}
	lose()
	var rejected rejection
	if err := r.openOperators(ctx); !errors.As(err, &rejected) || !strings.Contains(err.Error(), "its digest is "+secondSHA[:12]+", the campaign was submitted with "+firstSHA[:12]) {
		t.Errorf("a lost copy of a file that has changed: %v", err)
	}
	writeFile(t, a, first)
	open("lost copy")
	if n := strings.Count(log.String(), "the operator is missing from the store, copies it again"); n != 2 {
		t.Errorf("%d warnings, log %s", n, log.String())
	}
}

// TestRejectedOperators: a campaign whose operator file is missing, damaged, or not the submitted one is rejected with the reason,
// and nothing is copied.
func TestRejectedOperators(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data, sha := operatorFile(t, "")
	path := writeFile(t, filepath.Join(folder, "blur.onnx"), data)
	other := strings.Repeat("ab", 32)
	for name, tt := range map[string]struct {
		path, sha, want string
	}{
		"another file": {path, other, "blur.onnx: its digest is " + sha[:12] + ", the campaign was submitted with abababababab; submit the campaign again under another name"},
		"missing":      {filepath.Join(folder, "none.onnx"), "", "none.onnx"},
		"damaged":      {writeFile(t, filepath.Join(folder, "cut.onnx"), data[:len(data)/2]), "", "cut.onnx"},
	} {
		r := operatorRunner(t, &strings.Builder{}, []string{tt.path}, record.OperatorFile{Path: tt.path, SHA256: tt.sha})
		var rejected rejection
		if err := r.openOperators(t.Context()); !errors.As(err, &rejected) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want a rejection with %q", name, err, tt.want)
		}
		if _, err := r.s.cfg.Store.Stat(t.Context(), priorKey(sha)); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: a copy in the store, %v", name, err)
		}
	}
	r := operatorRunner(t, &strings.Builder{}, []string{path}, record.OperatorFile{Path: path, SHA256: sha})
	if err := r.openOperators(t.Context()); err != nil {
		t.Errorf("the submitted file: %v", err)
	}
}

// modelsAt reads every address with the same answer.
type modelsAt struct {
	data []byte
	err  error
	got  []string
}

func (m *modelsAt) Get(_ context.Context, path string) ([]byte, error) {
	m.got = append(m.got, path)
	return m.data, m.err
}

// TestOperatorAtAddress: while its server does not answer, the campaign waits and its status names the reason without the query
// of the address. Then the file is read.
func TestOperatorAtAddress(t *testing.T) {
	t.Parallel()
	data, sha := operatorFile(t, "")
	address := "https://host/blur.onnx?sig=SECRET"
	r := operatorRunner(t, &strings.Builder{}, []string{address})
	models := &modelsAt{err: fmt.Errorf("%w: no route", storage.ErrUnavailable)}
	r.models.files = models
	var rejected rejection
	if err := r.openOperators(t.Context()); !errors.Is(err, storage.ErrUnavailable) || errors.As(err, &rejected) {
		t.Errorf("error %v", err)
	}
	s, err := board.Status(t.Context(), r.s.cfg.Board, r.id)
	must(t, err)
	if p := s.Status.Problem; !strings.HasPrefix(p, "waiting for the operator since 2001-09-09T01:46:40Z: read operator https://host/blur.onnx") || strings.Contains(p, "SECRET") {
		t.Errorf("problem %q", p)
	}
	models.data, models.err = data, nil
	if err := r.openOperators(t.Context()); err != nil || r.rec.Operators[0].SHA256 != sha {
		t.Errorf("operators %+v, %v", r.rec.Operators, err)
	}
	if reason := r.reader.waiting.reason(); reason != "" {
		t.Errorf("the campaign still waits: %s", reason)
	}
	if len(models.got) != 2 || models.got[0] != address {
		t.Errorf("read %q", models.got)
	}
	// The store is the workers' only source, so an outage of it is not the end of the campaign either.
	r.models.store = unavailableStore{r.models.store}
	if err := r.openOperators(t.Context()); !errors.Is(err, storage.ErrUnavailable) || errors.As(err, &rejected) {
		t.Errorf("the store does not answer: %v", err)
	}
}

// unavailableStore is a store that does not answer.
type unavailableStore struct{ storage.Store }

func (unavailableStore) Get(context.Context, string) ([]byte, error) {
	return nil, storage.ErrUnavailable
}
