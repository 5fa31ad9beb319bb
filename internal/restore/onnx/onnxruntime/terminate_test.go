package onnxruntime_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// endless returns a session that adds x to itself without end.
func endless(t *testing.T, rt *onnxruntime.Runtime) *onnxruntime.Session {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2)
	final, _ := g.Loop(g.Ints(math.MaxInt64), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		return []onnx.Value{b.Add(s[0], x)}, nil
	})
	g.Output("y", final[0])
	model, err := g.Marshal("endless")
	must(t, err)
	s, err := rt.NewSession(model, []string{"x"}, []string{"y"})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The end of the context terminates a call, the first one of a session and later ones; an ended context prevents a call.
func TestContextTerminatesRun(t *testing.T) {
	s := endless(t, onnxtest.Runtime(t))
	tensors, err := onnxruntime.NewTensors(onnx.Value{DType: onnx.Float, Dims: []int{2}}, onnx.Value{DType: onnx.Float, Dims: []int{2}})
	must(t, err)
	defer onnxruntime.CloseTensors(tensors)
	x, y := tensors[0], tensors[1]
	reason := errors.New("reason")
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		timer := time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
		err := s.Run(ctx, []*onnxruntime.Tensor{x}, []*onnxruntime.Tensor{y})
		timer.Stop()
		if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
			t.Errorf("Run returned %v, want the context's error and its cause", err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("the call ended after %v", took)
		}
		if err := s.Run(ctx, []*onnxruntime.Tensor{x}, []*onnxruntime.Tensor{y}); !errors.Is(err, context.Canceled) {
			t.Errorf("Run with an ended context returned %v", err)
		}
	}
}
