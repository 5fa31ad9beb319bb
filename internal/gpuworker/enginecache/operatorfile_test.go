package enginecache

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// operatorFile stores an operator that multiplies an image, as a coordinator does.
func (c *files) operatorFile(factor float32) record.OperatorFile {
	c.t.Helper()
	g := onnx.NewGraph(17)
	x := g.Input("x", onnx.Float, 1, 3, 8, 8)
	g.Output("y", g.Mul(x, g.Scalar(factor)))
	data, err := g.Marshal("own")
	must(c.t, err)
	return c.storedOperator(onnxtest.WithMetadata(c.t, data, map[string]string{"ddiff.kind": "operator"}))
}

func (c *files) storedOperator(data []byte) record.OperatorFile {
	c.t.Helper()
	f := record.OperatorFile{Path: "own.onnx", SHA256: regular.SHA256(data)}
	f.Key = "operators/" + f.SHA256 + ".onnx"
	must(c.t, c.store.Put(c.t.Context(), f.Key, data))
	return f
}

// Four operator files stay in memory, the least recently used one goes first; a campaign with more files has them all.
func TestOperatorsInMemory(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	e := c.engines()
	var all []record.OperatorFile
	for i := range 6 {
		all = append(all, c.operatorFile(float32(i+1)/8))
	}
	for _, step := range []struct {
		files  []record.OperatorFile
		opened int
	}{
		{all[:1], 1}, {all[1:2], 2}, {all[2:3], 3}, {all[3:4], 4},
		{all[:1], 4}, // in memory
		{all[4:5], 5},
		{all[:1], 5}, {all[2:3], 5}, {all[3:4], 5}, {all[4:5], 5},
		{all[1:2], 6}, // was the least recently used one
		{all, 8},
		{all, 8},
	} {
		got, err := e.Operators(t.Context(), step.files)
		must(t, err)
		if len(got) != len(step.files) {
			t.Errorf("%d operators for %d files", len(got), len(step.files))
		}
		for _, f := range step.files {
			if o := got[f.SHA256]; o == nil || o.SHA256 != f.SHA256 {
				t.Errorf("the digest %.12s has the operator %v", f.SHA256, o)
			}
		}
		if n := strings.Count(c.log.String(), "opened operator"); n != step.opened {
			t.Fatalf("%d operators were opened, want %d:\n%s", n, step.opened, c.log.String())
		}
	}
}

func TestUnusableOperators(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	e := c.engines()
	good := c.operatorFile(0.5)
	missing := good
	missing.Key, missing.SHA256 = "operators/none.onnx", regular.SHA256([]byte("none"))
	for name, f := range map[string]record.OperatorFile{
		"not in store": missing,
		"no operator":  c.storedOperator(workertest.Share(t, 0.1)),
		"no network":   c.storedOperator([]byte("text")),
	} {
		if got, err := e.Operators(t.Context(), []record.OperatorFile{good, f}); !errors.Is(err, ErrOperatorFile) || got != nil {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
	other := c.operatorFile(0.25)
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, err := e.Operators(ended, []record.OperatorFile{other}); err == nil || errors.Is(err, ErrOperatorFile) {
		t.Errorf("an interrupted check: error %v", err)
	}
	_, err := e.Operators(t.Context(), []record.OperatorFile{other})
	must(t, err)
}
