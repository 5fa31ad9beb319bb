package solver

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"strconv"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func bundled(t testing.TB) *prior.Prior {
	t.Helper()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	return p
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// randomPrior is a network of the published architecture with random weights.
func randomPrior(t testing.TB, side int) *prior.Prior {
	t.Helper()
	data, err := onnxtest.Network(side)
	must(t, err)
	p, err := prior.Load("random", data)
	must(t, err)
	return p
}

func newOperator(t testing.TB, task string, shape operator.Shape) *operator.Operator {
	t.Helper()
	op, err := operator.Builtin().New(task, nil, shape)
	must(t, err)
	return op
}

// named is a built-in method.
func named(t testing.TB, name string) method.Named {
	t.Helper()
	m, err := method.Builtin().Find(name)
	must(t, err)
	return m
}

// config is DDiff with the preset gradient.
func config(t testing.TB, task string, steps int) method.Settings {
	t.Helper()
	return resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: task, Steps: steps})
}

func resolve(t testing.TB, r method.Request) method.Settings {
	t.Helper()
	s, err := method.Builtin().Resolve(r, 1000)
	must(t, err)
	return s
}

// unmirrored adds to values that the network sees images as they are: those of mirrored ones have no closed form here.
func unmirrored(values map[string]parameter.Value) map[string]parameter.Value {
	out := map[string]parameter.Value{"mirror": parameter.Word("none")}
	maps.Copy(out, values)
	return out
}

// with changes settings, given as names and numbers or words in turn.
func with(s method.Settings, changes ...any) method.Settings {
	for i := 0; i < len(changes); i += 2 {
		v := parameter.Value{}
		switch x := changes[i+1].(type) {
		case float64:
			v.Number = x
		case int:
			v.Number = float64(x)
		case string:
			v.Word = x
		}
		s = s.With(changes[i].(string), v)
	}
	return s
}

// newRun plans a run of a built-in method.
func newRun(t testing.TB, p *prior.Prior, op *operator.Operator, s method.Settings) *method.Run {
	t.Helper()
	m, err := method.Builtin().Find(s.Method)
	must(t, err)
	return planRun(t, m, s, p, op)
}

// planRun plans a run of any method.
func planRun(t testing.TB, m method.Method, s method.Settings, p *prior.Prior, op *operator.Operator) *method.Run {
	t.Helper()
	run, err := method.NewRun(m, s, p, op)
	must(t, err)
	return run
}

// encoded returns the mask or kernel of a key.
func encoded(t testing.TB, op *operator.Operator, key noise.Key) []float32 {
	t.Helper()
	draw, err := op.Encode(op.Draw(key))
	must(t, err)
	return draw
}

func newSolver(t testing.TB, p *prior.Prior, op *operator.Operator, s method.Settings, n int) *Solver {
	t.Helper()
	return compile(t, onnxtest.Runtime(t), newRun(t, p, op, s), n, Build{})
}

func compile(t testing.TB, rt *onnxruntime.Runtime, run *method.Run, n int, build Build) *Solver {
	t.Helper()
	s, err := New(rt, run, n, build)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Solve restores problems from their starts.
func (s *Solver) Solve(ctx context.Context, problems []Problem, progress func(step int) error) ([]Solution, error) {
	return s.SolveKeeping(ctx, problems, nil, progress)
}

// SolveKeeping is Solve that also keeps the images after some steps, see ResumeKeeping.
func (s *Solver) SolveKeeping(ctx context.Context, problems []Problem, at func(step int) bool, progress func(step int) error) ([]Solution, error) {
	states, curves, kept := make([]State, len(problems)), make([]Curves, len(problems)), make([]Kept, len(problems))
	for i, p := range problems {
		states[i] = s.Start(p.Key)
	}
	if err := s.ResumeKeeping(ctx, problems, states, curves, at, kept, progress); err != nil {
		return nil, err
	}
	answers, err := s.Answers(ctx, states)
	if err != nil {
		return nil, err
	}
	solutions := make([]Solution, len(problems))
	for i := range solutions {
		solutions[i] = Solution{X: answers[i], Curves: curves[i], Kept: kept[i]}
	}
	return solutions, nil
}

func solve(t testing.TB, s *Solver, probs []Problem) []Solution {
	t.Helper()
	got, err := s.Solve(context.Background(), probs, nil)
	must(t, err)
	return got
}

// gaussianPrior is the score model of independent pixels N(0, variance_i), whose answer is
// known, see [gaussianScore]. Like every exported model it is a file
// with a card.
func gaussianPrior(t testing.TB, n int, shape operator.Shape, variance []float32) *prior.Prior {
	t.Helper()
	schedule, err := prior.ParseSchedule(linearSchedule)
	must(t, err)
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, shape.Dims(n)...)
	g.Output("eps", gaussianScore(g, x, g.Input("t", onnx.Int64, n), variance, schedule))
	data, err := g.Marshal("gaussian")
	must(t, err)
	data = onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "gaussian", "ddiff.prediction": "epsilon", "ddiff.schedule": linearSchedule,
		"ddiff.range": "-1..1", "ddiff.channels": strconv.Itoa(shape.Channels), "ddiff.multiple_of": "2",
		"ddiff.learned_variance": "false", "ddiff.license": "Apache-2.0",
	})
	p, err := prior.Load("gaussian.onnx", data)
	must(t, err)
	return p
}

// problems simulates measurements of smooth random images.
func problems(t testing.TB, op *operator.Operator, n int, sigma float64) []Problem {
	t.Helper()
	f, err := operator.NewForward(onnxtest.Runtime(t), op)
	must(t, err)
	defer f.Close()
	var out []Problem
	for i := range n {
		key := noise.Key{uint32(i + 1), 42}
		draw := encoded(t, op, key)
		y, err := f.Measure(context.Background(), scene(op.Image, i), draw, operator.Noise{Sigma: sigma}, key)
		must(t, err)
		out = append(out, Problem{Y: y, Draw: draw, Key: key})
	}
	return out
}

// scene is a smooth picture with an edge.
func scene(s operator.Shape, seed int) []float32 {
	out := make([]float32, s.Size())
	for i := range out {
		c, y, x := i/(s.Height*s.Width), float64(i/s.Width%s.Height)/float64(s.Height), float64(i%s.Width)/float64(s.Width)
		v := 0.5*math.Sin(float64(3+seed)*x*2+float64(c)) + 0.3*math.Cos(5*y)
		if x+y > 1.1 {
			v -= 0.6
		}
		out[i] = float32(max(-0.95, min(0.95, v)))
	}
	return out
}

// maxAbs returns the largest difference, and infinity if a value is not a number.
func maxAbs(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}

// wantImages checks that no value of an image differs by more than a limit.
func wantImages(t *testing.T, got, want []Solution, limit float64) {
	t.Helper()
	for i := range want {
		if d := maxAbs(got[i].X, want[i].X); !(d <= limit) {
			t.Errorf("image %d differs by %.2g", i, d)
		}
	}
}

func float64s(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
