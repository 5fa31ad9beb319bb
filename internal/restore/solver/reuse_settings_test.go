package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// otherValue returns a value of a parameter beside its present one.
func otherValue(p parameter.Parameter, now parameter.Value) parameter.Value {
	if len(p.Choices) > 0 {
		return parameter.Word(p.Choices[(slices.Index(p.Choices, now.Word)+1)%len(p.Choices)])
	}
	for _, x := range []float64{now.Number / 2, now.Number * 2, now.Number + 1, p.Max} {
		if v := parameter.Number(x); v != now && p.Test(v) == nil {
			return v
		}
	}
	return now
}

// A solver that takes over settings in which one parameter of any method differs returns the pixels and curves of a new solver, and later
// those of its first settings again.
func TestReuseOfEveryParameter(t *testing.T) {
	if testing.Short() {
		t.Skip("solves with many settings: make test-all")
	}
	t.Parallel()
	rt, image := onnxtest.Runtime(t), operator.Shape{Channels: 3, Height: 8, Width: 8}
	latents := operator.Shape{Channels: 4, Height: 4, Width: 4}
	pixels := gaussianPrior(t, 1, image, slices.Repeat([]float32{0.1, 0.4}, image.Size()/2))
	latent := linearPrior(t, newLinearStage(image, latents, 1), slices.Repeat([]float32{0.1, 0.4}, latents.Size()/2))
	reused := map[string]int{}
	for _, m := range method.Builtin() {
		info, p, task := m.Info(), pixels, operator.GaussianDeblur
		if info.Latent {
			p = latent
		} else if slices.Contains(info.Parameters.Names(), "recover") {
			task = operator.HDR
		}
		op := newOperator(t, task, image)
		probs := problems(t, op, 1, 0.05)
		solve := func(s *Solver) string { // NaN is no image
			got, err := s.Solve(context.Background(), probs, nil)
			if err != nil && !errors.Is(err, ErrDiverged) {
				t.Fatalf("%s: %v", info.Name, err)
			}
			return fmt.Sprint(got, err != nil)
		}
		request := method.Request{Method: info.Name, Preset: "ffhq", Task: task, Steps: 3, Values: map[string]parameter.Value{}}
		for _, q := range info.Parameters {
			if q.Integer && q.Default > 4 { // iterations
				request.Values[q.Name] = parameter.Number(4)
			}
		}
		base := newRun(t, p, op, resolve(t, request))
		used := compile(t, rt, base, 1, Build{})
		want := solve(used)
		take := func(run *method.Run) bool {
			t.Helper()
			ok, err := used.Reuse(rt, run, 1, Build{})
			if err != nil {
				t.Fatalf("%s: %v", info.Name, err)
			}
			return ok
		}
		runs := map[string]*method.Run{}
		for _, q := range info.Parameters {
			changed := request
			changed.Values = map[string]parameter.Value{q.Name: otherValue(q, base.Settings.Value(q.Name))}
			for name, v := range request.Values {
				if name != q.Name {
					changed.Values[name] = v
				}
			}
			runs[q.Name] = newRun(t, p, op, resolve(t, changed))
		}
		longer := request
		longer.Steps = 4
		runs["steps"] = newRun(t, p, op, resolve(t, longer))
		for name, run := range runs {
			if !take(run) {
				continue
			}
			reused[info.Name]++
			if solve(used) != solve(compile(t, rt, run, 1, Build{})) {
				t.Errorf("%s with another %s: not the result of a new solver", info.Name, name)
			}
		}
		if !take(base) || solve(used) != want {
			t.Errorf("%s: the first settings have another result", info.Name)
		}
	}
	for _, name := range []string{"ddiff", "dpir", "diffpir", "reddiff", "dps", "daps", "latent_ddiff", "latent_daps", "psld"} {
		if reused[name] == 0 {
			t.Errorf("%s is compiled again for every parameter", name)
		}
	}
}
