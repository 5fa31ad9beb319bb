package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestCampaignOfToys runs a method and an operator, each from one file outside the program, through a campaign to its report.
// Tasks and methods without preset rows have their defaults.
//
// It runs in this process, which has one ONNX Runtime, and so not beside other tests that open it.
func TestCampaignOfToys(t *testing.T) {
	if testing.Short() {
		t.Skip("restores images: make test-all")
	}
	lib, err := install.Locate(install.LocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(install.EnvVar, lib.Path)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c := manifest.Catalogue{
		Methods:   append(method.Builtin(), method.Named{Name: "toy_method", Method: toyMethod{}}),
		Operators: append(operator.Builtin(), toyOperator()),
	}
	run := func(args ...string) (stdout string, err error) {
		var out, errs bytes.Buffer
		root := newRootCommand(&out, c)
		root.SetArgs(args)
		root.SetOut(&out)
		root.SetErr(&errs)
		if err = root.ExecuteContext(t.Context()); err != nil {
			t.Logf("%v: %v\n%s", args, err, errs.String())
		}
		return out.String(), err
	}
	images, err := filepath.Abs("../../examples/images")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	spec, out := filepath.Join(dir, "toys.yaml"), filepath.Join(dir, "out")
	write := func(solver string) {
		text := "dataset: {path: " + images + ", size: 32, fit: resize, limit: 2}\n" +
			"tasks: [{name: toy_operator, params: {contrast: 0.7}}, hdr]\nmethods: [ddiff, toy_method]\nsteps: 6\nsolver: " + solver + "\n"
		if err := os.WriteFile(spec, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("{rate: 2}")
	if _, err := run("run", spec, "--out", out, "--device", "cpu"); err == nil || !strings.Contains(err.Error(), "toys.yaml:5: solver.rate: 2 is outside (0, 1]") {
		t.Errorf("error %v, want line, field and range", err)
	}
	write("{rate: 0.9, gamma0: 5}")
	if _, err := run("run", spec, "--out", out, "--device", "cpu"); err != nil {
		t.Fatal(err)
	}

	file, err := os.ReadFile(filepath.Join(out, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil || len(rows) != 9 {
		t.Fatalf("%d rows of results, %v; want a header and 8", len(rows), err)
	}
	toys := 0
	for _, row := range rows[1:] {
		if !slices.Contains(row, "toy_operator") || !slices.Contains(row, "toy_method") {
			continue
		}
		toys++
		it := filepath.Join(out, "items", row[0])
		var r item.Result
		var trace item.Trace
		for name, into := range map[string]any{item.FileResult: &r, item.FileTrace: &trace} {
			data, err := os.ReadFile(filepath.Join(it, name))
			if err == nil {
				err = json.Unmarshal(data, into)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var settings bytes.Buffer
		if err := json.Compact(&settings, r.Item.Solver); err != nil {
			t.Fatal(err)
		}
		if got := settings.String(); got != `{"method":"toy_method","steps":6,"rate":0.9}` || r.Item.Params["contrast"] != 0.7 {
			t.Errorf("item has settings %s and parameters %v", got, r.Item.Params)
		}
		if len(trace["timestep"]) != 6 || len(trace["toy_norm"]) != 6 || !(trace["toy_norm"][5] < trace["toy_norm"][0]) {
			t.Errorf("trace %+v, want six falling norms", trace)
		}
		if !(r.Metrics["psnr"] > r.Metrics["baseline_psnr"]) {
			t.Errorf("PSNR %g, degraded %g", r.Metrics["psnr"], r.Metrics["baseline_psnr"])
		}
	}
	if toys != 2 {
		t.Errorf("%d results of the toys, want 2", toys)
	}
	page, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || !bytes.Contains(page, []byte("Toy operator")) || !bytes.Contains(page, []byte("toy_method")) || !bytes.Contains(page, []byte("toy_norm")) {
		t.Errorf("the page lacks the toys, error %v", err)
	}
	for _, args := range [][]string{{"methods"}, {"methods", "--json"}, {"tasks"}} {
		want := map[string]string{"methods": "deterministic reverse steps", "tasks": "toy_operator"}[args[0]]
		if text, err := run(args...); err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: error %v, or its output lacks %q", args, err, want)
		}
	}
}

// presetToy is the toy method with a preset of its own.
type presetToy struct{ toyMethod }

func (p presetToy) Info() method.Info {
	i := p.toyMethod.Info()
	i.Rows = []method.Row{{Preset: "toys", Task: operator.HDR, Steps: 8, Values: map[string]parameter.Value{"rate": parameter.Number(0.7)}}}
	return i
}

// The commands know the built-in methods, presets and parameters by declaration only.
func TestCommandsWithoutDDiff(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"PRESET  TASK                   STEPS  RATE\n": {"tasks"},
		"toys    hdr                    8      0.7\n":  {"tasks"},
		`"toys": {
        "method": "toy_method",
        "steps": 8,`: {"tasks", "--json"},
	} {
		var out bytes.Buffer
		root := newRootCommand(&out, manifest.Catalogue{Methods: method.Set{{Name: "toy_method", Method: presetToy{}}}})
		root.SetArgs(args)
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: error %v, or the output lacks %q:\n%s", args, err, want, out.String())
		}
	}
}

// toyMethod is a method outside the program: it repeats deterministic reverse steps, with a step of the data term in each.
type toyMethod struct{}

func (toyMethod) Info() method.Info {
	return method.Info{
		About: "deterministic reverse steps", Citation: "none", Steps: 6,
		Parameters: parameter.List{{Name: "rate", Default: 0.2, Max: 1, Open: true, Doc: "step size of the data term"}},
		State:      []method.Tensor{{Name: "image", Noise: true}},
		Curves:     []method.Curve{{Name: "toy_norm", About: "‖y − A(z)‖"}},
	}
}

func (toyMethod) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for _, l := range levels {
		k := math.Sqrt((1 - l.Next) / (1 - l.Alpha))
		out = append(out, method.Step{Time: l.Time, Scalars: map[string]float64{
			"rate": s.Number("rate"), "of_clean": math.Sqrt(l.Next) - k*math.Sqrt(l.Alpha), "of_image": k,
		}})
	}
	return out, err
}

func (toyMethod) Step(b *method.Builder, _ method.Settings) method.Next {
	z := b.Clean(b.State("image"))
	pull, norm := b.Pull(z, b.Planned("rate"), method.GradientSquared)
	next := b.Add(b.Mul(b.Add(z, pull), b.Planned("of_clean")), b.Mul(b.State("image"), b.Planned("of_image")))
	return method.Next{State: map[string]onnx.Value{"image": next}, Curves: map[string]onnx.Value{"toy_norm": norm}}
}

// toyOperator is an operator outside the program: it dims the image.
func toyOperator() operator.Definition {
	return operator.Definition{
		Name: "toy_operator", Label: "Toy operator", Doc: "the image at a lower contrast",
		Parameters: parameter.List{{Name: "contrast", Default: 0.5, Max: 1, Open: true, Doc: "factor of the image"}},
		Build: func(_ operator.Shape, p map[string]float64) (operator.Expression, error) {
			return operator.Expression{Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
				return g.Mul(x, g.Scalar(float32(p["contrast"])))
			}}, nil
		},
	}
}
