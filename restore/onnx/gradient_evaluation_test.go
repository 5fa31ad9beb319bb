package onnx_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// evaluation is a compiled graph with its tensors.
type evaluation struct {
	t       *testing.T
	session *onnxruntime.Session
	in, out []*onnxruntime.Tensor
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newEvaluation compiles a graph for the CPU; the test's end releases it.
func newEvaluation(t *testing.T, g *onnx.Graph, inputs []onnx.Value, outputs ...onnx.Value) *evaluation {
	t.Helper()
	return evaluationOf(t, g, onnxtest.Runtime(t).NewSession, inputs, outputs)
}

// newSerialEvaluation compiles a graph for one thread of the CPU.
func newSerialEvaluation(t *testing.T, g *onnx.Graph, inputs []onnx.Value, outputs ...onnx.Value) *evaluation {
	t.Helper()
	return evaluationOf(t, g, onnxtest.Runtime(t).NewSerialSession, inputs, outputs)
}

func evaluationOf(t *testing.T, g *onnx.Graph, compile func(model []byte, in, out []string) (*onnxruntime.Session, error), inputs, outputs []onnx.Value) *evaluation {
	t.Helper()
	model, err := g.Marshal("test")
	must(t, err)
	e := &evaluation{t: t}
	e.session, err = compile(model, onnx.Names(inputs), onnx.Names(outputs))
	must(t, err)
	t.Cleanup(func() {
		if err := e.session.Close(); err != nil {
			t.Error(err)
		}
	})
	e.in, err = onnxruntime.NewTensors(inputs...)
	must(t, err)
	t.Cleanup(func() { onnxruntime.CloseTensors(e.in) })
	e.out, err = onnxruntime.NewTensors(outputs...)
	must(t, err)
	t.Cleanup(func() { onnxruntime.CloseTensors(e.out) })
	return e
}

// run evaluates the outputs.
func (e *evaluation) run(inputs ...[]float32) [][]float32 {
	e.t.Helper()
	for i, x := range inputs {
		copy(e.in[i].F32, x)
	}
	if err := e.session.Run(context.Background(), e.in, e.out); err != nil {
		e.t.Fatal(err)
	}
	var res [][]float32
	for _, v := range e.out {
		res = append(res, slices.Clone(v.F32))
	}
	return res
}

// compareDifferences compares a gradient with central differences. The inputs begin with x and the seed of y, the outputs are
// y and the gradient. It returns the largest error, of three directions, of the derivative of seed·y along the direction,
// relative to the length of y's derivative.
func (e *evaluation) compareDifferences(at []float32, results int) float64 {
	e.t.Helper()
	worst := 0.0
	for draw := range uint32(3) {
		along, seed := onnxtest.Random(len(at), 10+draw), onnxtest.Random(results, 20+draw)
		difference := func(h float64) []float64 {
			up, down := e.run(step(at, along, h), seed)[0], e.run(step(at, along, -h), seed)[0]
			d := make([]float64, len(up))
			for i := range d {
				d[i] = (float64(up[i]) - float64(down[i])) / (2 * h)
			}
			return d
		}
		const h = 1e-2
		d1, d2 := difference(h), difference(h/2)
		got, want, length := 0.0, 0.0, 0.0
		for i, s := range seed {
			d := (4*d2[i] - d1[i]) / 3
			want += float64(s) * d
			length += d * d
		}
		for i, v := range e.run(at, seed)[1] {
			got += float64(v) * float64(along[i])
		}
		rel := math.Abs(got-want) / math.Sqrt(length)
		if math.IsNaN(rel) {
			return rel
		}
		worst = max(worst, rel)
	}
	return worst
}

// step returns at + h·along.
func step(at, along []float32, h float64) []float32 {
	p := make([]float32, len(at))
	for i := range p {
		p[i] = at[i] + float32(h)*along[i]
	}
	return p
}

// gradients counts what the tests of reverse mode compared.
var gradients tally

type tally struct {
	mutex  sync.Mutex
	graphs int
	max    float64
}

// record adds a relative error within its limit.
func (c *tally) record(rel float64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.max = max(c.max, rel)
}

// recordGraph adds a graph of several operations, with its relative error.
func (c *tally) recordGraph(rel float64) {
	c.record(rel)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.graphs++
}
