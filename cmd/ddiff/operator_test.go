package main_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/onnx"
)

// learnedBlur is an operator file as the exporter of BKSE writes it, for sides that are multiples of 128.
var learnedBlur = filepath.Join("..", "..", "restore", "operator", "testdata", "bkse.onnx")

// TestOperatorFile restores with an operator file of a campaign, and again from the passport.
func TestOperatorFile(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	copyFile(t, learnedBlur, filepath.Join(dir, "My Blur.onnx"))
	copyFile(t, photograph("coffee"), filepath.Join(dir, "coffee.png"))
	campaign := filepath.Join(dir, "campaign.yaml")
	write(t, campaign, []byte("dataset: {path: coffee.png, size: 128}\ntasks: [{operator: My Blur.onnx}, {operator: My Blur.onnx, sigma: 0.1}]\n"))
	out := filepath.Join(dir, "out")
	wantCode(t, ddiff(t, "run", campaign, "--threads", "1", "--steps", "3", "--out", out), 0)
	results := results(t, out)
	if len(results) != 2 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		o := r.Item.Operator
		if r.Item.Task != "my_blur" || o == nil || o.SHA256 != regular.SHA256(read(t, learnedBlur)) || r.Artifacts["kernel.npy"] == "" || !r.Metrics.Has("residual") || !r.Metrics.Has("baseline_psnr") {
			t.Errorf("result %+v", r)
		}
	}
	if results[0].Artifacts["kernel.npy"] != results[1].Artifacts["kernel.npy"] {
		t.Error("a sweep over the noise has different kernels")
	}
	f, err := os.Open(filepath.Join(out, "results.csv"))
	must(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	must(t, err)
	if i := slices.Index(rows[0], "task"); rows[1][i] != "my_blur" {
		t.Errorf("results.csv has the task %q", rows[1][i])
	}
	wantCode(t, ddiff(t, "verify", out), 0)
	image := filepath.Join(out, "items", results[0].Item.ID, "restored.png")
	e := ddiff(t, "replay", image, "--threads", "1")
	wantCode(t, e, 0)
	if !strings.HasPrefix(e.stdout, "replay=bit-equal max_levels=0 measurement=bit-equal") {
		t.Error(e.stdout)
	}
	must(t, os.Mkdir(filepath.Join(dir, "moved"), 0o755))
	must(t, os.Rename(filepath.Join(dir, "My Blur.onnx"), filepath.Join(dir, "moved", "My Blur.onnx")))
	e = ddiff(t, "replay", image, "--threads", "1")
	wantCode(t, e, 7)
	wantMessage(t, e, "My Blur.onnx", "give its directory with --root")
	wantCode(t, ddiff(t, "replay", image, "--threads", "1", "--root", filepath.Join(dir, "moved")), 0)
	// The same bytes under another name are the same items.
	e = ddiff(t, "run", "--images", filepath.Join(dir, "coffee.png"), "--operator", filepath.Join(dir, "moved", "My Blur.onnx"),
		"--size", "128", "--steps", "3", "--out", out, "--dry-run", "--json")
	wantCode(t, e, 0)
	var plan struct{ Done, Items int }
	must(t, json.Unmarshal([]byte(e.stdout), &plan))
	if plan.Items != 1 || plan.Done != 1 {
		t.Errorf("the file at another place: %+v", plan)
	}
}

// results reads the results of an output, in the order of their noise.
func results(t *testing.T, out string) []item.Result {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "items", "*", "result.json"))
	must(t, err)
	var all []item.Result
	for _, file := range files {
		var r item.Result
		must(t, json.Unmarshal(read(t, file), &r))
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b item.Result) int { return int(1000 * (a.Item.Sigma - b.Item.Sigma)) })
	return all
}

// TestClusterFetchesOperator: the coordinator copies the operator into the store, and a worker, which cannot read the file,
// restores with the copy. Another file at the path rejects the campaign.
func TestClusterFetchesOperator(t *testing.T) {
	t.Parallel()
	store, dir := t.TempDir(), t.TempDir()
	n := startNATS(t, "")
	file := filepath.Join(dir, "blur.onnx")
	copyFile(t, learnedBlur, file)
	copyFile(t, photograph("coffee"), filepath.Join(dir, "coffee.png"))
	c, at := n.coordinator(t, store)
	path := func(name string) string {
		path := filepath.Join(dir, name+".yaml")
		write(t, path, fmt.Appendf(nil, "name: %s\ndataset: {path: coffee.png, size: 128}\nsteps: 3\ntasks: [{operator: blur.onnx}]\n", name))
		return path
	}
	wantCode(t, ddiff(t, "submit", path("good"), "--server", at, "--output", "good"), 0)
	sha := regular.SHA256(read(t, learnedBlur))
	// A cache of its own: another test may have fetched the same operator.
	w := startProcess(t, []string{"XDG_CACHE_HOME=" + t.TempDir()}, "worker", "--threads", "1", "--device", "cpu", "--nats", n.url, "--once", "4s", "--log-level", "info")
	w.wait(t, &w.stderr, "fetched operator", 1)
	must(t, os.Remove(file))
	wantCode(t, w.end(), 0)
	if got := regular.SHA256(read(t, filepath.Join(store, "priors", sha+".onnx"))); got != sha {
		t.Errorf("the copy in the store has the digest %s", got)
	}
	all := results(t, filepath.Join(store, "good"))
	if len(all) != 1 || all[0].Item.Operator.SHA256 != sha || all[0].Outcome != item.OutcomeDone {
		t.Errorf("results %+v", all)
	}

	writeDim(t, file) // after the submitter has read it
	spec, err := manifest.Load(path("exchanged"))
	must(t, err)
	done, err := client(t, at).SubmitSpec(t.Context(), spec, api.Order{Output: "exchanged", Operators: []record.OperatorFile{{Path: file, SHA256: sha}}})
	must(t, err)
	wantCode(t, ddiff(t, "submit", path("exchanged"), "--server", at, "--output", "exchanged"), 2) // another campaign
	e := ddiff(t, "status", "--watch", done.ID, "--server", at)
	wantCode(t, e, 3)
	wantMessage(t, e, file, "the campaign was submitted with "+sha[:12], "submit the campaign again under another name")
	if _, err := os.Stat(filepath.Join(store, "exchanged")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the rejected campaign has an output: %v", err)
	}
	c.signal(t, syscall.SIGTERM)
	wantCode(t, c.end(), 0)
}

// writeDim writes an operator that halves an image.
func writeDim(t *testing.T, path string) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 1, 3, 128, 128)
	g.Output("y", g.Mul(x, g.Scalar(0.5)))
	data, err := g.Marshal("dim")
	must(t, err)
	write(t, path, data)
}

// TestDocumentedOperator runs examples/sensor.py, which docs/campaigns.md links, checks its file and restores with it.
func TestDocumentedOperator(t *testing.T) {
	t.Parallel()
	python := python(t)
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "sensor.py"))
	must(t, err)
	dir := t.TempDir()
	cmd := exec.Command(python, "-W", "ignore", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "sensor.onnx")
	e := ddiff(t, "operator", "check", file, "--size", "64")
	wantCode(t, e, 0)
	for _, part := range []string{"output [1 3 32 32]", "parameter gain=1, (0, 4]: gain of the sensor", "gradient against finite differences"} {
		if !strings.Contains(e.stdout, part) {
			t.Errorf("no %q in %s", part, e.stdout)
		}
	}
	out := filepath.Join(dir, "out")
	args := []string{"--images", photograph("coffee"), "--operator", file, "--param", "gain=1.2", "--out", out}
	e = restore(t, args...)
	wantCode(t, e, 0)
	wantMessage(t, e, "note: no settings were chosen for sensor; ddiff tune")
	all := results(t, out)
	if len(all) != 1 || all[0].Item.Params["gain"] != 1.2 || all[0].Metrics.Has("baseline_psnr") || !(all[0].Metrics["psnr"] >= 20) {
		t.Errorf("results %+v", all)
	}
	e = restore(t, append(args, "--param", "gain=5")...)
	wantCode(t, e, 2)
	wantMessage(t, e, "--param gain=5", "5 is outside (0, 4]")
}
