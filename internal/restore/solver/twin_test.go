package solver

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// The plain PyTorch twin (tools/ddiff_torch) gets the same measurement, start and noise, and
// must come to the same image after 15 steps, or 10 for phase retrieval and tasks that are not the paper's.
func TestAgainstTorchTwin(t *testing.T) {
	if testing.Short() {
		t.Skip("needs PyTorch: make test-all")
	}
	t.Parallel()
	python := "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import torch, onnx").Run(); err != nil {
		t.Skipf("needs PyTorch and onnx for %s (Debian: apt-get install python3-torch python3-onnx): %v", python, err)
	}
	model, err := filepath.Abs("../../../internal/restore/prior/bundled/prior.onnx")
	must(t, err)
	const n, steps, size = 2, 15, 32
	shape := operator.Shape{Channels: 3, Height: size, Width: size}
	type job struct {
		name  string
		op    *operator.Operator
		cfg   method.Settings
		probs []Problem
	}
	var jobs []job
	preset := func(name, task, note string, steps int, changes ...any) {
		cfg := with(resolve(t, method.Request{Method: "ddiff", Preset: name, Task: task, Steps: steps}), changes...)
		op := newOperator(t, task, shape)
		jobs = append(jobs, job{task + note, op, cfg, problems(t, op, n, 0.05)})
	}
	add := func(task, note string, changes ...any) { preset("ffhq", task, note, steps, changes...) }
	for _, info := range operator.Paper() {
		if info.Sensitive {
			preset("ffhq", info.Name, "", 10) // rounding grows from step to step
			continue
		}
		add(info.Name, "")
	}
	add(operator.GaussianDeblur, "-full", "sigma_rule", "full")
	add(operator.SuperResolution, "-norm", "gradient", method.GradientNorm)
	add(operator.InpaintRandom, "-squared", "gradient", method.GradientSquared, "gamma0", 0.1)
	for _, name := range []string{"ddiff_hqs", "diff_pnp_admm", "diff_pnp_hqs"} {
		add(operator.GaussianDeblur, "-"+name)
		cfg := &jobs[len(jobs)-1].cfg
		m, err := method.Builtin().Find(name)
		must(t, err)
		cfg.Method = name
		cfg.Values = slices.DeleteFunc(slices.Clone(cfg.Values), func(v method.Setting) bool {
			_, ok := m.Info().Parameters.Find(v.Name)
			return !ok
		})
	}
	for _, task := range []string{operator.Denoise, operator.Demosaic} {
		preset("gradient", task, "", 10)
	}

	dir := t.TempDir()
	var names []string
	for _, j := range jobs {
		names = append(names, j.name)
		folder := filepath.Join(dir, j.name)
		must(t, os.Mkdir(folder, 0o755))
		writeJob(t, folder, model, j.op, j.cfg, j.probs)
	}
	top, _ := json.Marshal(map[string]any{"jobs": names, "threads": 1})
	must(t, os.WriteFile(filepath.Join(dir, "job.json"), top, 0o644))
	cmd := exec.Command(python, "-m", "ddiff_torch.twin", dir)
	cmd.Dir = "../../../tools"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("twin: %v\n%s", err, out)
	}
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			s := newSolver(t, bundled(t), j.op, j.cfg, n)
			got := solve(t, s, j.probs)
			want := readArray(t, filepath.Join(dir, j.name, "x.npy"))
			m := shape.Size()
			for i := range n {
				if d := maxAbs(got[i].X, want[i*m:(i+1)*m]); !(d <= 1e-3) {
					t.Errorf("image %d: largest difference %.2g", i, d)
				}
			}
			compareCurves(t, filepath.Join(dir, j.name, "curves.json"), got)
		})
	}
}

func writeJob(t *testing.T, folder, model string, op *operator.Operator, cfg method.Settings, probs []Problem) {
	t.Helper()
	n, m := len(probs), op.Image.Size()
	x, e, y := make([]float32, n*m), make([]float32, cfg.Steps*n*m), []float32(nil)
	levels, err := method.Levels(prior.Schedule{AlphaBar: make([]float64, 1000)}, cfg.Steps)
	must(t, err)
	var draws []float32
	var draw *operator.Draw
	for i, p := range probs {
		noise.Normal(x[i*m:(i+1)*m], p.Key, noise.Start, 0, 1)
		for k, l := range levels {
			noise.Normal(e[(k*n+i)*m:(k*n+i+1)*m], p.Key, noise.Step, uint32(l.Time), 1)
		}
		y = append(y, p.Y...)
		if draw = op.Draw(p.Key); draw != nil {
			draws = append(draws, draw.Data...)
		}
	}
	write := func(name string, dims []int, data []float32) {
		b, err := raster.EncodeNPY(dims, data)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, name+".npy"), b, 0o644))
	}
	write("x_T", op.Image.Dims(n), x)
	write("noise", append([]int{cfg.Steps}, op.Image.Dims(n)...), e)
	write("y", op.MeasurementDims(n), y)
	if draw != nil {
		write(draw.Name, []int{n, 1, draw.Dims[0], draw.Dims[1]}, draws)
	}
	task, params, scale := op.Task, map[string]float64{}, float64(op.Image.Height)/256
	switch task {
	case operator.InpaintBox, operator.InpaintRandom:
		task = "inpaint"
	case operator.GaussianDeblur:
		params["std"], params["size"] = 3*scale, 15 // 61·64/256, odd
	}
	gamma0 := cfg.Number("gamma0")
	if cfg.Word("gradient") == method.GradientSquared {
		gamma0 /= scale // the twin scales every step size with the image
	}
	job := map[string]any{"task": task, "params": params, "prior": model, "method": cfg.Method, "steps": cfg.Steps,
		"t0": 300, "sigma_rule": "ddpm", "answer": "x_plus_u"} // the twin reads them for methods without noise, too
	for _, v := range cfg.Values {
		if !slices.Contains([]string{"data_step", "recover", "noise_std", "mirror"}, v.Name) { // the twin has the paper's step alone
			job[v.Name] = v.Value
		}
	}
	job["gamma0"] = gamma0
	raw, err := json.Marshal(job)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "job.json"), raw, 0o644))
}

func readArray(t *testing.T, path string) []float32 {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	a, err := raster.DecodeNPY(data)
	must(t, err)
	return a.Data
}

// compareCurves holds the norms of every step and image against the twin's.
func compareCurves(t *testing.T, path string, got []Solution) {
	t.Helper()
	var want struct {
		T            []int
		DataNorm     [][]float64 `json:"data_norm"`
		Primal, Dual [][]float64
	}
	readJSON(t, path, &want)
	for i, s := range got {
		c := s.Curves
		if fmt.Sprint(c.Time) != fmt.Sprint(want.T) {
			t.Fatalf("times %v, twin %v", c.Time, want.T)
		}
		for name, pair := range map[string]struct {
			got  []float64
			want [][]float64
		}{
			"data": {c.Curve("data_norm"), want.DataNorm}, "primal": {c.Curve("primal_norm"), want.Primal}, "dual": {c.Curve("dual_norm"), want.Dual},
		} {
			if name == "dual" && pair.got == nil { // a method without dual variable
				continue
			}
			if len(pair.got) != len(want.T) {
				t.Fatalf("%d entries of %s, want %d", len(pair.got), name, len(want.T))
			}
			for k, v := range pair.got {
				if w := pair.want[k][i]; !(math.Abs(v-w) <= 1e-2*math.Abs(w)+2e-3) {
					t.Fatalf("image %d, step %d: %s norm %.6g, twin %.6g", i, k+1, name, v, w)
				}
			}
		}
	}
}
