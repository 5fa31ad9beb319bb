package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// replayLine matches the output of replay.
var replayLine = regexp.MustCompile(`^replay=(\S+) max_levels=(\d+) measurement=(\S+) psnr_delta=(\S+)\n$`)

// comparison is the output of a replay.
type comparison struct {
	verdict, measurement string
	levels               int
	psnr                 string
}

// replay runs ddiff replay and parses its output. The verdict must agree with the difference.
func replay(t *testing.T, code int, args ...string) (comparison, ended) {
	t.Helper()
	e := ddiff(t, append([]string{"replay", "--threads", "1"}, args...)...)
	wantCode(t, e, code)
	m := replayLine.FindStringSubmatch(e.stdout)
	if m == nil {
		t.Fatalf("stdout is not one line of the right form\n%v", e)
	}
	levels, err := strconv.Atoi(m[2])
	must(t, err)
	want := "different"
	switch levels {
	case 0:
		want = "bit-equal"
	case 1:
		want = "within-tolerance"
	}
	if m[1] != want {
		t.Errorf("the verdict on %d levels is %s, want %s", levels, m[1], want)
	}
	return comparison{m[1], m[3], levels, m[4]}, e
}

// wantSmall checks that rounding explains a PSNR difference.
func wantSmall(t *testing.T, c comparison) {
	t.Helper()
	if d, err := strconv.ParseFloat(c.psnr, 64); err != nil || !(d <= 0.01) || !(d >= -0.01) {
		t.Errorf("the PSNR differs by %s", c.psnr)
	}
}

// TestReplayTasks recomputes an image of every task.
func TestReplayTasks(t *testing.T) {
	t.Parallel()
	const tasks = "super_resolution,inpaint_box,inpaint_random,gaussian_deblur,motion_deblur,phase_retrieval,nonlinear_deblur,hdr"
	out := tiny(t, "--images", photograph("coffee"), "--task", tasks, "--batch", "1")
	for id, r := range wantItems(t, out, 8) {
		t.Run(r.Item.Task, func(t *testing.T) {
			t.Parallel()
			c, e := replay(t, 0, file(out, id, item.FileRestored))
			if c.verdict == "different" || c.measurement != "bit-equal" {
				t.Errorf("%+v", c)
			}
			wantSmall(t, c)
			if e.stderr != "" {
				t.Errorf("stderr has %q", e.stderr)
			}
		})
	}
}

// TestReplayBatch recomputes an image of a batch alone.
func TestReplayBatch(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "chelsea", "coffee", "rocket", "astronaut"), "--task", "super_resolution", "--batch", "4")
	for id, r := range wantItems(t, out, 4) {
		if r.Batch != 4 {
			t.Fatalf("item %s was made in a batch of %d", r.Item.Name, r.Batch)
		}
		if r.Item.Name != "rocket" {
			continue
		}
		c, e := replay(t, 0, filepath.Dir(file(out, id, item.FileResult)), "--threads", "2")
		if c.verdict == "different" || c.measurement != "bit-equal" {
			t.Errorf("%+v", c)
		}
		wantSmall(t, c)
		wantMessage(t, e, "note: made by ddiff", "threads=1 in a batch of 4, replayed by ddiff", "threads=2 alone")
	}
}

// TestReplayForm recomputes an image whose network had a stated form, which the report shows, in that form.
func TestReplayForm(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "super_resolution", "--batch", "1", "--form", "tables")
	if page, err := os.ReadFile(filepath.Join(out, "index.html")); err != nil || !strings.Contains(string(page), `"form":"tables"`) {
		t.Errorf("the report has no form, %v", err)
	}
	for id, r := range wantItems(t, out, 1) {
		if r.Runtime.Form != string(prior.TimeTables) {
			t.Fatalf("the form is %q", r.Runtime.Form)
		}
		c, e := replay(t, 0, file(out, id, item.FileRestored), "--device", r.Runtime.Provider)
		if c.verdict != "bit-equal" || e.stderr != "" { // a note would name another form
			t.Errorf("%+v, stderr %q", c, e.stderr)
		}
	}
}

// TestReplayChanged replays changed images and changed passports.
func TestReplayChanged(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr")
	original := filepath.Join(folderOf(t, out, "hdr"), "restored.png")
	other := filepath.Join(t.TempDir(), "tiny.onnx")
	writePrior(t, other, 3, card(3))
	p, err := prior.Open(other)
	must(t, err)
	bundled, err := prior.Open(prior.Bundled)
	must(t, err)
	for _, c := range []struct {
		name    string
		change  func(t *testing.T, path string)
		flags   []string
		message []string
	}{
		{"seed", func(t *testing.T, path string) { editPassport(t, path, `"seed":0`, `"seed":1`) }, nil, []string{"photo.png: item.id: is ", "it was changed"}},
		{"steps", func(t *testing.T, path string) { editPassport(t, path, `"steps":10`, `"steps":12`) }, nil, []string{"photo.png: item.id: is "}},
		{"prior", func(t *testing.T, path string) { editPassport(t, path, bundled.SHA256, p.SHA256) }, []string{"--prior", other}, []string{"photo.png: item.id: is "}},
		{"pixels", func(t *testing.T, path string) {
			repaint(t, path, func(img *raster.Image) { img.Pix[7] = -img.Pix[7] })
		}, nil, []string{"photo.png: pixels: have the SHA-256"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "photo.png")
			copyFile(t, original, path)
			c.change(t, path)
			got, e := replay(t, 3, append(c.flags, path)...)
			if got.verdict != "different" {
				t.Errorf("%+v", got)
			}
			wantMessage(t, e, append([]string{"ddiff: "}, c.message...)...)
			wantMessage(t, e, "ddiff: mismatch: ")
			if first, _, _ := strings.Cut(e.stderr, "\n"); !strings.Contains(first, c.message[0]) {
				t.Errorf("the first line does not state the problem:\n%v", e)
			}
		})
	}
	t.Run("only the identity", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "photo.png")
		copyFile(t, original, path)
		id := filepath.Base(filepath.Dir(original))
		editPassport(t, path, id, strings.Repeat("0", len(id)))
		c, e := replay(t, 3, path)
		if c.verdict == "different" {
			t.Errorf("%+v", c)
		}
		wantMessage(t, e, "ddiff: mismatch: ", "does not match its passport")
	})
}

// TestReplayWarns replays an image whose passport lacks a warning, as that of a version with fewer checks.
func TestReplayWarns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folderOf(t, tiny(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "5"), "hdr"), "restored.png")
	editPassport(t, path, `"code":"steps"`, `"code":"other"`)
	c, e := replay(t, 0, path)
	if c.verdict == "different" || strings.Count(e.stderr, "\n") != 1 {
		t.Errorf("%+v, stderr %q", c, e.stderr)
	}
	wantMessage(t, e, "ddiff: note: a warning that the passport lacks: 5 steps, ")
}

// TestReplayRefuses checks the errors of replay.
func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee")
	out := tiny(t, "--images", dir, "--task", "hdr,inpaint_random")
	original := filepath.Join(folderOf(t, out, "hdr"), "restored.png")
	must(t, os.Remove(filepath.Join(dir, "coffee.png")))
	other := filepath.Join(t.TempDir(), "tiny.onnx")
	writePrior(t, other, 3, card(3))
	copyWith := func(old, by string) string {
		path := filepath.Join(t.TempDir(), "photo.png")
		copyFile(t, original, path)
		editPassport(t, path, old, by)
		return path
	}
	damaged := filepath.Join(t.TempDir(), "out")
	must(t, os.CopyFS(damaged, os.DirFS(out)))
	flip(t, filepath.Join(sameFolder(damaged, original), "measurement.npy"), 1)
	for _, c := range []struct {
		name    string
		args    []string
		code    int
		message []string
	}{
		{"another prior", []string{original, "--prior", other}, 7, []string{"prior " + other + ": its SHA-256 is", "was made with", "give that file with --prior"}},
		{"no prior", []string{original, "--prior", "nowhere.onnx"}, 7, []string{"no such file"}},
		{"no passport", []string{photograph("coffee")}, 3, []string{"cannot be replayed"}},
		{"another size", []string{copyWith(`"width":32`, `"width":128`)}, 3, []string{"its passport is for another size"}},
		{"unknown task", []string{copyWith(`"task":"hdr"`, `"task":"magic"`), "--root", filepath.Dir(photograph("coffee"))}, 3, []string{"mismatch: replay", `unknown task "magic"`}},
		{"a copy without a source", []string{copyWith(`"run":0`, `"run":0`)}, 2, []string{"coffee.png is gone, and", "measurement.npy does not exist; give the directory of the source with --root"}},
		{"changed measurement", []string{sameFolder(damaged, original)}, 2, []string{"coffee.png is gone, and", "measurement.npy was changed; give the directory"}},
		{"several images", []string{out}, 2, []string{"has several images; name one of them"}},
		{"nowhere", []string{"nowhere.png"}, 2, []string{"no such file or folder"}},
		{"nothing", nil, 2, []string{"0 arguments; usage: ddiff replay OUTPUT"}},
		{"wrong device", []string{original, "--device", "gpu"}, 2, []string{"none of auto, cpu, cuda[:N], tensorrt[:N], webgpu[:N] or openvino"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := ddiff(t, append([]string{"replay"}, c.args...)...)
			wantCode(t, e, c.code)
			wantMessage(t, e, append([]string{"ddiff: "}, c.message...)...)
			if e.stdout != "" {
				t.Errorf("stdout has %q", e.stdout)
			}
		})
	}
}

// sameFolder returns the folder, in a copy of an output, of the item that a path in the output names.
func sameFolder(copied, path string) string {
	return filepath.Join(copied, "items", filepath.Base(filepath.Dir(path)))
}

// TestReplayWithoutSource replays from the arrays beside the image, or from a moved source with its masks and kernels.
func TestReplayWithoutSource(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	data := filepath.Join(root, "data")
	must(t, os.MkdirAll(filepath.Join(data, "photos"), 0o755))
	copyFile(t, photograph("coffee"), filepath.Join(data, "photos", "coffee.png"))
	mask := make([]float32, 32*32)
	for i := range mask {
		mask[i] = float32(i % 3 % 2)
	}
	file, err := raster.EncodeNPY([]int{32, 32}, mask)
	must(t, err)
	write(t, filepath.Join(data, "mask.npy"), file)
	write(t, filepath.Join(data, "list.csv"), []byte("image,task,mask\nphotos/coffee.png,inpaint_random,mask.npy\nphotos/coffee.png,motion_deblur,\n"))
	out := tiny(t, "--images", filepath.Join(data, "list.csv"), "--task", "inpaint_random,motion_deblur")
	must(t, os.Rename(data, filepath.Join(root, "moved")))
	for _, task := range []string{"inpaint_random", "motion_deblur"} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			dir := folderOf(t, out, task)
			c, e := replay(t, 0, dir)
			if c.verdict == "different" || c.measurement != "stored" || c.psnr != "none" {
				t.Errorf("from the arrays: %+v", c)
			}
			wantMessage(t, e, "note: "+filepath.Join(data, "photos", "coffee.png")+" is gone", "using the arrays beside "+filepath.Join(dir, "restored.png"))

			c, e = replay(t, 0, dir, "--root", filepath.Join(root, "moved"))
			if c.verdict == "different" || c.measurement != "bit-equal" {
				t.Errorf("from the moved source: %+v", c)
			}
			wantSmall(t, c)
			if e.stderr != "" {
				t.Errorf("stderr has %q", e.stderr)
			}
		})
	}
}

// TestReplayStoredMeasurement replays an image without a ground truth.
func TestReplayStoredMeasurement(t *testing.T) {
	t.Parallel()
	from := tiny(t, "--images", photograph("coffee"), "--task", "super_resolution")
	dir := t.TempDir()
	copyFile(t, filepath.Join(folderOf(t, from, "super_resolution"), "measurement.npy"), filepath.Join(dir, "y.npy"))
	write(t, filepath.Join(dir, "list.csv"), []byte("measurement\ny.npy\n"))
	out := tiny(t, "--images", filepath.Join(dir, "list.csv"), "--task", "super_resolution")
	for _, want := range []string{"bit-equal", "stored"} {
		c, _ := replay(t, 0, folderOf(t, out, "super_resolution"))
		if c.verdict == "different" || c.measurement != want || c.psnr != "none" {
			t.Errorf("%+v, want measurement=%s", c, want)
		}
		must(t, os.RemoveAll(filepath.Join(dir, "y.npy"))) // for the second round
	}
	e := ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, fmt.Sprintf("its measurement is not checked: %s cannot be read", filepath.Join(dir, "y.npy")))
}

// TestReplayReencoded: the replay of a file that cannot have the pixels that were computed says so, and names the file that has them.
func TestReplayReencoded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, results := filepath.Join(dir, "a.png"), filepath.Join(dir, "results")
	write(t, a, deepGrey(t))
	for out, args := range map[string][]string{"a.jpg": {"--quality", "30"}, "a.png": {"--measurement-range", "9000,60000"}} {
		out = filepath.Join(dir, "out", out)
		wantCode(t, ddiff(t, append(quick(a, "--out", out, "--results", results, "--unchecked"), args...)...), 0)
		_, e := replay(t, 3, out)
		wantMessage(t, e, "the replay of "+out+" differs", "has other pixels than were computed; replay the restored.png of --results")
	}
	kept, err := filepath.Glob(filepath.Join(results, "items", "*", "restored.png"))
	if must(t, err); len(kept) != 2 {
		t.Fatalf("the results have %d images", len(kept))
	}
	for _, path := range kept {
		replay(t, 0, path)
	}
}
