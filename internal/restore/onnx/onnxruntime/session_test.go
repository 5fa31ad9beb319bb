package onnxruntime_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// The first sessions of a process can be made beside each other. Two of five processes failed when ONNX Runtime made them at once.
func TestFirstSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: make test-all")
	}
	const name = "DDIFF_TEST_FIRST"
	if os.Getenv(name) == "" {
		t.Parallel()
		for range 20 {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFirstSessions$")
			cmd.Env = append(os.Environ(), name+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		}
		return
	}
	rt := onnxtest.Runtime(t)
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 1)
	g.Output("y", g.Neg(x))
	model, err := g.Marshal("m")
	must(t, err)
	var made errgroup.Group
	begin := make(chan struct{})
	for range 8 {
		made.Go(func() error {
			<-begin
			s, err := rt.NewSession(model, []string{"x"}, []string{"y"})
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	close(begin)
	must(t, made.Wait())
}
