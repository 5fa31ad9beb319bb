package main_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ddiff/internal/regular"
	"ddiff/restore/item"
)

// TestLearnedBlur goes the whole way of a published operator: weights under the published names, exporter, check, a campaign of ddiff
// run with the file and with another one of the same operator, and the same campaign on a cluster whose worker cannot read the files.
func TestLearnedBlur(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blur, plain := filepath.Join(dir, "blur.onnx"), filepath.Join(dir, "plain.onnx")
	cmd := exec.Command(python(t), "-W", "ignore", "learned_blur.py", blur)
	cmd.Dir = filepath.Join("..", "..", "tools")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	if version, err := exec.Command(python(t), "-c", "import torch; print(torch.__version__)").Output(); err == nil && strings.HasPrefix(string(version), "1.13.") &&
		string(read(t, blur)) != string(read(t, learnedBlur)) {
		t.Error("the exporter writes another file than that of the tests; run tools/learned_blur.py restore/operator/testdata/bkse.onnx")
	}
	write(t, plain, append(read(t, blur), "2\x05plain"...)) // with a description
	for path, vectors := range map[string]bool{blur: true, plain: false} {
		e := ddiff(t, "operator", "check", path, "--size", "128", "--json")
		wantCode(t, e, 0)
		var r struct{ Vectors *agreement }
		must(t, json.Unmarshal([]byte(e.stdout), &r))
		if (r.Vectors != nil) != vectors {
			t.Errorf("%s: %s", path, e.stdout)
		}
	}

	// On this machine.
	copyFile(t, photograph("coffee"), filepath.Join(dir, "coffee.png"))
	campaign := filepath.Join(dir, "blurs.yaml")
	write(t, campaign, []byte("dataset: {path: coffee.png, size: 128}\nsteps: 3\ntasks: [{operator: blur.onnx}, {operator: plain.onnx}]\n"))
	local := filepath.Join(dir, "out")
	args := []string{"run", campaign, "--threads", "1", "--out", local}
	wantCode(t, ddiff(t, args...), 0)
	mine := wantItems(t, local, 2)
	for _, r := range mine {
		path := map[string]string{"blur": blur, "plain": plain}[r.Item.Task]
		if o := r.Item.Operator; path == "" || o == nil || o.SHA256 != regular.SHA256(read(t, path)) || !r.Metrics.Has("residual") {
			t.Errorf("result %+v", r)
		}
	}
	e := ddiff(t, args...) // resumes
	wantCode(t, e, 0)
	wantMessage(t, e, "2 items, 2 of them are done, 0 to do")
	wantCode(t, ddiff(t, "verify", local), 0)
	wantCode(t, ddiff(t, "report", local, "--format", "html", "--out", filepath.Join(dir, "report")), 0)
	if page := string(read(t, filepath.Join(dir, "report", "index.html"))); !strings.Contains(page, "plain") {
		t.Error("the report lacks the operator")
	}
	for id, r := range mine {
		wantLine(t, ddiff(t, "replay", file(local, id, item.FileRestored), "--threads", "1"), "replay=bit-equal")
		y, kernel := filepath.Join(dir, r.Item.Task+"-y.npy"), file(local, id, "kernel.npy")
		copyFile(t, file(local, id, item.FileData), y)
		again := []string{"restore", y, "--operator", filepath.Join(dir, r.Item.Task+".onnx"), "--steps", "3", "--threads", "1"}
		e := ddiff(t, again...)
		wantCode(t, e, 2)
		wantMessage(t, e, "needs the kernel of the pictures; give --kernel FILE")
		wantCode(t, ddiff(t, append(again, "--kernel", kernel)...), 0)
		decode(t, read(t, filepath.Join(dir, r.Item.Task+"-y.restored.png")))
	}
	// A larger image in tiles of the network; the operator is that of the whole image.
	tiled := filepath.Join(dir, "tiled")
	wantCode(t, ddiff(t, "run", "--images", photograph("coffee"), "--operator", plain, "--size", "256", "--tile", "128", "--steps", "2", "--threads", "1", "--out", tiled), 0)
	wantItems(t, tiled, 1)

	// On a cluster.
	store, n := t.TempDir(), startNATS(t, "")
	c, at := n.coordinator(t, store, "--log-level", "info")
	e = ddiff(t, "submit", campaign, "--server", at, "--output", "blurs")
	wantCode(t, e, 0)
	id := strings.TrimSpace(e.stdout)
	c.wait(t, &c.stderr, "workers find the file in the store", 2)
	kept := read(t, plain)
	must(t, errors.Join(os.Remove(blur), os.Remove(plain)))
	w := beginWorker(t, "--nats", n.url, "--once", "4s")
	wantCode(t, ddiff(t, "status", "--watch", id, "--server", at), 0)
	wantCode(t, w.end(), 0)
	for id, r := range wantItems(t, filepath.Join(store, "blurs"), 2) {
		m := mine[id]
		if m.Artifacts["kernel.npy"] != r.Artifacts["kernel.npy"] || m.Artifacts[item.FileData] != r.Artifacts[item.FileData] || !m.Metrics.Has("psnr") ||
			!(math.Abs(m.Metrics["psnr"]-r.Metrics["psnr"]) <= 0.05) {
			t.Errorf("the cluster's item %s is %+v, that of ddiff run %+v", id, r, m)
		}
		if _, err := os.Stat(filepath.Join(store, "priors", r.Item.Operator.SHA256+".onnx")); errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	c.signal(t, syscall.SIGTERM)
	wantCode(t, c.end(), 0)

	// Other bytes at the path of one file: another item.
	writeDim(t, blur)
	write(t, plain, kept)
	e = ddiff(t, append(args, "--dry-run", "--json")...)
	wantCode(t, e, 0)
	var plan struct{ Done, Items int }
	if err := json.Unmarshal([]byte(e.stdout), &plan); err != nil || plan.Items != 2 || plan.Done != 1 {
		t.Errorf("after the exchange: %+v, %v", plan, err)
	}
}
