package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// A run in another precision has results of its own in the same output, which verify and replay.
func TestPrecisionOfRun(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr", "--device", "cpu", "--precision", "float16")
	again := ddiff(t, "run", photograph("coffee"), "--task", "hdr", "--size", "32", "--steps", "4", "--device", "cpu", "--precision", "float32", "--out", out, "--quiet")
	wantCode(t, again, 0)
	used := map[manifest.Precision]manifest.Precision{"float16": "float16", "float32": "float32"}
	for id, r := range wantItems(t, out, 2) {
		if want, ok := used[r.Item.Precision]; !ok || r.Runtime.Precision != want {
			t.Errorf("an item in %q was computed in %q", r.Item.Precision, r.Runtime.Precision)
		}
		delete(used, r.Item.Precision)
		if r.Item.Precision != "float16" {
			continue
		}
		image := file(out, id, item.FileRestored)
		wantCode(t, ddiff(t, "verify", image), 0)
		if c, _ := replay(t, 0, image, "--device", "cpu"); c.verdict == "different" {
			t.Errorf("a replay in float16: %+v", c)
		}
	}
	if len(used) > 0 {
		t.Errorf("no results in %v", used)
	}
}

// A device that lacks the precision of a run ends the command with code 4.
func TestMissingPrecision(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "run", photograph("coffee"), "--task", "hdr", "--size", "32", "--device", "cpu", "--precision", "bfloat16", "--out", t.TempDir())
	wantCode(t, e, 4)
	wantMessage(t, e, "cpu cannot compute the network in bfloat16; it computes in float32, float16")
}

// The precision auto is a fixed one, which the run names.
func TestAutoPrecisionOfRun(t *testing.T) {
	skipLong(t)
	t.Parallel()
	out := t.TempDir()
	for _, flag := range []string{"--dry-run", "--json=false"} {
		e := ddiff(t, "run", photograph("coffee"), "--task", "hdr", "--size", "32", "--steps", "4", "--device", "cpu", "--precision", "auto", "--out", out, flag)
		wantCode(t, e, 0)
		wantMessage(t, e, "note: precision auto is float32 on cpu")
	}
	for _, r := range wantItems(t, out, 1) {
		if r.Item.Precision != "float32" || r.Runtime.Precision != "float32" {
			t.Errorf("an item in %q was computed in %q", r.Item.Precision, r.Runtime.Precision)
		}
	}
}

// A cluster has no precision auto: its workers have several devices.
func TestAutoPrecisionOfSubmission(t *testing.T) {
	t.Parallel()
	n := startNATS(t, "")
	file := filepath.Join(t.TempDir(), "auto.yaml")
	write(t, file, []byte("dataset: {path: /photos}\ntasks: [hdr]\nprecision: auto\n"))
	_, at := n.coordinator(t, t.TempDir())
	wantRefusal(t, ddiff(t, "submit", file, "--server", at), 2, "precision: auto is for ddiff run; give float32, bfloat16 or float16")
	wantCode(t, ddiff(t, "submit", file, "--server", at, "--precision", "bfloat16"), 0)
}

// An operator of one's own in float32 does not stop a run of other tasks or of another operator.
func TestFloat32OfOperatorLeftOut(t *testing.T) {
	t.Parallel()
	photo, err := filepath.Abs(photograph("coffee"))
	must(t, err)
	blur, err := filepath.Abs(learnedBlur)
	must(t, err)
	dir := t.TempDir()
	data, err := os.ReadFile(blur)
	must(t, err)
	other := filepath.Join(dir, "other.onnx")
	write(t, other, data)
	file := filepath.Join(dir, "own.yaml")
	write(t, file, fmt.Appendf(nil, "dataset: {path: %s, size: 128}\ntasks: [hdr, {name: blur, operator: %s}]\nprecision: float16\nfloat32: [blur]\noutput: %s\n",
		photo, blur, filepath.Join(dir, "out")))
	for _, args := range [][]string{{"--task", "hdr"}, {"--operator", other}, {"--task", "hdr", "--operator", other}, {"--task", "hdr", "--operator", blur}} {
		wantCode(t, ddiff(t, append([]string{"run", file, "--dry-run", "--device", "cpu"}, args...)...), 0)
	}
}

// A task of float32 is computed in it beside another precision of the campaign, and its results say so.
func TestFloat32BesideFloat16(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	photo, err := filepath.Abs(photograph("coffee"))
	must(t, err)
	file, out := filepath.Join(dir, "both.yaml"), filepath.Join(dir, "out")
	write(t, file, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\ntasks: [hdr, phase_retrieval]\nprecision: float16\nfloat32: [phase_retrieval]\nsteps: 4\noutput: %s\n",
		photo, out))
	wantCode(t, ddiff(t, "run", file, "--device", "cpu", "--threads", "1"), 0)
	for _, r := range wantItems(t, out, 2) {
		want := manifest.PrecisionFloat16
		if r.Item.Task == "phase_retrieval" {
			want = manifest.PrecisionFloat32
		}
		if r.Item.Precision != want || r.Runtime.Precision != want {
			t.Errorf("%s: an item in %q was computed in %q", r.Item.Task, r.Item.Precision, r.Runtime.Precision)
		}
	}
}
