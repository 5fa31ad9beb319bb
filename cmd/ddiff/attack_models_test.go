package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// strangersFile writes an operator or a prior and returns its path.
func strangersFile(t *testing.T, name string, metadata map[string]string, build func(g *onnx.Graph)) string {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	build(g)
	data, err := g.Marshal("own")
	must(t, err)
	path := filepath.Join(t.TempDir(), name)
	write(t, path, onnxtest.WithMetadata(t, data, metadata))
	return path
}

// doubled doubles the list of the elements of x that are not zero, whose length no shape tells, again and again, and returns its sum.
func doubled(g *onnx.Graph, x onnx.Value, times int) onnx.Value {
	v := g.Apply("Cast", onnx.Float, []int{4, -1}, map[string]any{"to": int(onnx.Float)}, g.Apply("NonZero", onnx.Int64, []int{4, -1}, nil, x))
	for range times {
		v = g.Apply("Concat", onnx.Float, []int{4, -1}, map[string]any{"axis": 1}, v, v)
	}
	return g.Apply("ReduceSum", onnx.Float, []int{}, map[string]any{"keepdims": 0}, v)
}

// endWithAll is end, with the largest resident memory of the process and of those that it started, in MiB.
func endWithAll(t *testing.T, cmd *exec.Cmd) (e ended, mib int64) {
	t.Helper()
	e = end(t, cmd)
	return e, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
}

// TestAttackStrangersModels: files that need many GiB are refused at every door, in one line, before they take them. The runs of a machine are those of
// first files: an honest one is remembered.
func TestAttackStrangersModels(t *testing.T) {
	t.Parallel()
	const most = 3 << 10 // MiB
	dir := photographs(t, "coffee")
	// The buffer of ConvTranspose has 215² entries for each of 256² pixels: 12 GB; its result less than a megabyte.
	column := strangersFile(t, "column.onnx", nil, func(g *onnx.Graph) {
		x := g.Input("x", onnx.Float, 1, 3, 256, 256)
		kernel := g.Expand(g.Const([]float32{1e-4}, 1, 1, 1, 1), 3, 1, 215, 215)
		wide := g.Apply("ConvTranspose", onnx.Float, []int{1, 1, 470, 470}, nil, x, kernel)
		g.Output("y", g.Slice(g.Slice(wide, 2, 0, 256), 3, 0, 256))
	})
	beside := strangersFile(t, "beside.onnx", nil, func(g *onnx.Graph) {
		x := g.Input("x", onnx.Float, 1, 3, 64, 64)
		doubled(g, x, 18)
		g.Output("y", g.Mul(x, g.Scalar(0.5)))
	})
	unknown := strangersFile(t, "unknown.onnx", nil, func(g *onnx.Graph) {
		x := g.Input("x", onnx.Float, 1, 3, 64, 64)
		ones := g.Expand(g.Apply("Exp", onnx.Float, []int{1, 1, 1, 1}, nil, g.Const([]float32{0}, 1, 1, 1, 1)), 1, 3, 64, 64)
		g.Output("y", g.Apply("Add", onnx.Float, x.Dims, nil, x, g.Mul(doubled(g, ones, 18), g.Scalar(0))))
	})
	prior := strangersFile(t, "prior.onnx", card(3), func(g *onnx.Graph) {
		x := g.Input("x", onnx.Float, -1, 3, -1, -1)
		g.Input("t", onnx.Int64, -1)
		g.Output("y", g.Apply("Add", onnx.Float, []int{-1, 3, -1, -1}, nil, x, g.Mul(doubled(g, x, 20), g.Scalar(0))))
	})
	run := func(flag, file string) []string {
		return []string{"run", dir, "--size", "64", "--task", "denoise", "--steps", "3", "--threads", "1", "--out", t.TempDir(), flag, file}
	}
	operator := func(file, size string) []string {
		return []string{"run", dir, "--size", size, "--steps", "3", "--threads", "1", "--out", t.TempDir(), "--operator", file}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"check column":   {[]string{"operator", "check", column}, 3, "MiB are allowed"},
		"run column":     {operator(column, "256"), 7, "MiB are allowed"},
		"check unknown":  {[]string{"operator", "check", unknown}, 7, `: infer shape of NonZero "NonZero_5": shape is unknown; export it with fixed sizes`},
		"run unknown":    {operator(unknown, "64"), 7, "shape is unknown; export it with fixed sizes"},
		"check beside":   {[]string{"operator", "check", beside}, 0, ""},
		"run beside":     {operator(beside, "64"), 0, ""},
		"check prior":    {[]string{"prior", "check", prior}, 7, "its first run, in a process of its own, needs more than"},
		"run prior":      {run("--prior", prior), 7, "its first run, in a process of its own, needs more than"},
		"restore prior":  {[]string{"restore", photograph("coffee"), "--task", "denoise", "--sigma", "0.1", "--prior", prior, "--out", t.TempDir()}, 7, "its first run, in a process of its own, needs more than"},
		"session prior":  {[]string{"session", "--prior", prior}, 7, "its first run, in a process of its own, needs more than"},
		"session nobody": {[]string{"session"}, 0, ""},
	} {
		e, mib := endWithAll(t, command(t, c.args...))
		t.Logf("%s: %d MiB, %s", name, mib, strings.TrimSpace(e.stderr))
		if e.code != c.code || !strings.Contains(e.stderr, c.text) || c.code != 0 && strings.Count(e.stderr, "ddiff: ") != 1 {
			t.Errorf("%s: want exit code %d and %q\n%v", name, c.code, c.text, e)
		}
		if mib > most {
			t.Errorf("%s: %d MiB", name, mib)
		}
	}
	sum := func(file string) string {
		return filepath.Join(cache, "ddiff", "trials", file[:strings.Index(file, "-")+1]+regular.SHA256(read(t, file[strings.Index(file, "-")+1:])))
	}
	for file, remembered := range map[string]bool{"operator-" + beside: true, "operator-" + column: false, "prior-" + prior: false} {
		if _, err := os.Stat(sum(file)); (err == nil) != remembered {
			t.Errorf("%s: %v", file, err)
		}
	}
}
