package operator_test

import (
	"fmt"
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// colourFilter is a task that is not built in: y is the sum of the channels, each with a gain
// per item, as behind a colour filter.
func colourFilter() operator.Definition {
	return operator.Definition{
		Name: "colour_filter", Label: "Colour filter", Doc: "weighted sum of the channels",
		Parameters: parameter.List{{Name: "exposure", Default: 0.5, Max: 2, Open: true, Doc: "factor of the sum"}},
		Build: func(s operator.Shape, p map[string]float64) (operator.Expression, error) {
			return operator.Expression{
				Measurement: []int{1, s.Height, s.Width},
				Forward: func(g *onnx.Graph, x, gains onnx.Value) onnx.Value {
					return g.Mul(g.ReduceSum(g.Mul(x, gains), 1), g.Scalar(float32(p["exposure"])))
				},
				Variable: &operator.Variable{
					Dims: []int{s.Channels, 1, 1},
					Draw: func(r *noise.Stream) *operator.Draw {
						d := &operator.Draw{Name: "kernel", Dims: []int{s.Channels, 1}}
						for range s.Channels {
							d.Data = append(d.Data, float32(r.Between(0.2, 1)))
						}
						return d
					},
					Check: func(d *operator.Draw) error {
						if len(d.Data) != s.Channels {
							return fmt.Errorf("%w kernel: %d gains for %d channels", operator.ErrParam, len(d.Data), s.Channels)
						}
						return nil
					},
				},
				Baseline: func(y []float32) []float32 { return slices.Repeat(y, s.Channels) },
			}, nil
		},
	}
}

// An operator of a program's own needs one definition: it is listed, measured, differentiated
// and solved like the built-in ones.
func TestOperatorOutsideThePackage(t *testing.T) {
	t.Parallel()
	set := append(operator.Builtin(), colourFilter())
	n := len(operator.Builtin())
	if names := set.Names(); len(names) != n+1 || names[n] != "colour_filter" || set.Label(names[n]) != "Colour filter" {
		t.Errorf("tasks %v, label %q", names, set.Label("colour_filter"))
	}
	if got := operator.Set(nil).Label("colour_filter"); got != "colour_filter" {
		t.Errorf("label %q of an unknown task, want its name", got)
	}
	shape := operator.Shape{Channels: 3, Height: 32, Width: 32}
	if _, err := set.New("colour_filter", map[string]float64{"exposure": 3}, shape); err == nil {
		t.Error("exposure 3 is out of range")
	}
	op, err := set.New("colour_filter", nil, shape)
	must(t, err)
	rt, key := onnxtest.Runtime(t), noise.Key{5}
	if r, err := op.CheckGradient(t.Context(), rt); err != nil || !(r.Error <= 1e-3) {
		t.Errorf("gradient %+v, %v", r, err)
	}
	draw, err := op.Encode(op.Draw(key))
	must(t, err)
	f, err := operator.NewForward(rt, op)
	must(t, err)
	defer f.Close()
	x := make([]float32, shape.Size())
	for i := range x {
		x[i] = float32(i%shape.Width)/16 - 1
	}
	y, err := f.Measure(t.Context(), x, draw, operator.Noise{Sigma: 0.01}, key)
	must(t, err)
	if b := op.Baseline(y); b == nil || len(b.Pix) != shape.Size() {
		t.Errorf("baseline %v", b)
	}
	if p := op.Picture(y); p.Channels != 1 || len(p.Pix) != len(y) {
		t.Errorf("picture of %d channels", p.Channels)
	}

	p, err := prior.Open(prior.Bundled)
	must(t, err)
	request := method.Request{Method: "ddiff", Preset: "natural", Task: operator.SuperResolution, Steps: 20}
	settings, err := method.Builtin().Resolve(request, p.Schedule.Steps())
	must(t, err)
	run, err := method.NewRun(method.DDiff(), settings, p, op)
	must(t, err)
	s, err := solver.New(rt, run, 1, solver.Build{})
	must(t, err)
	defer s.Close()
	answers, err := s.Solve(t.Context(), []solver.Problem{{Y: y, Draw: draw, Key: key}}, nil)
	must(t, err)
	again, err := f.Apply(t.Context(), answers[0].X, draw)
	must(t, err)
	if e := relative(again, y); !(e <= 0.3) {
		t.Errorf("A of the restored image differs from y by %.2g", e)
	}
}
