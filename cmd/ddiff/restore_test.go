package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"image/color"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// deepGrey is a grey PNG of 18×12 pixels with 16 bits.
func deepGrey(t *testing.T) []byte {
	t.Helper()
	img := raster.New(3, 12, 18)
	for c := range 3 {
		for i := range img.Plane(c) {
			img.Plane(c)[i] = float32(i%18)/9 - 0.99
		}
	}
	data, err := raster.EncodePicture(img, raster.Picture{Grey: true, Bits: 16})
	must(t, err)
	return data
}

// TestRestore restores a grey picture of 16 bits whose size does not suit the prior: the restored picture is grey, has 16 bits and
// the size, and its passport holds, with and without the source.
func TestRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, target := filepath.Join(dir, "small.png"), filepath.Join(dir, "small.restored.png")
	write(t, small, deepGrey(t))
	base := []string{"restore", small, "--task", "super_resolution", "--param", "factor=2", "--steps", "3", "--threads", "1"}
	e := ddiff(t, append(base, "--results", filepath.Join(dir, "out"))...)
	wantCode(t, e, 0)
	wantLine(t, e, target)
	wantLine(t, e, "done=1 failed=0 dead=0 skipped=0 warned=1")
	wantMessage(t, e, "small.png: mirrored from 36×24 to 40×24 restored pixels")
	wantMessage(t, e, "warning: "+target+": 3 steps, the preset natural has 10")
	config, err := png.DecodeConfig(bytes.NewReader(read(t, target)))
	if err != nil || config.Width != 36 || config.Height != 24 || config.ColorModel != color.Gray16Model {
		t.Errorf("the restored picture has %d×%d pixels of %v, %v", config.Width, config.Height, config.ColorModel, err)
	}
	wantCode(t, ddiff(t, "verify", target), 0)
	wantCode(t, ddiff(t, "verify", filepath.Join(dir, "out")), 0)
	for _, r := range wantItems(t, filepath.Join(dir, "out"), 1) {
		if p := r.Item.Picture; p == nil || *p != (item.Picture{Width: 36, Height: 24, Grey: true, Bits: 16}) {
			t.Errorf("the item's picture is %+v", p)
		}
	}
	it, err := filepath.Glob(filepath.Join(dir, "out", "items", "*", "restored.png"))
	must(t, err)
	e = ddiff(t, "replay", target, "--threads", "1")
	wantLine(t, e, "replay=bit-equal")

	// A second call computes nothing, and counts the warning of the passport; another task does not replace the file.
	before := read(t, target)
	e = ddiff(t, base...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=1 warned=1")
	for _, counts := range []string{"done=1 failed=0 dead=0 skipped=0 warned=1", "done=0 failed=0 dead=0 skipped=1 warned=1"} {
		e = ddiff(t, append(base, "--results", filepath.Join(dir, "later"))...) // results that the first call lacks
		wantCode(t, e, 0)
		wantLine(t, e, counts)
	}
	wantItems(t, filepath.Join(dir, "later"), 1)
	if string(read(t, target)) != string(before) {
		t.Error("the restored picture was replaced")
	}
	e = ddiff(t, "restore", small, "--task", "hdr", "--steps", "3")
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: ", "exists and is not its restoration with these settings; give --force")
	if string(read(t, target)) != string(before) {
		t.Error("the restored picture was replaced")
	}
	e = ddiff(t, "restore", small, "--task", "hdr", "--steps", "3", "--threads", "1", "--force", "--json")
	wantCode(t, e, 0)
	var object struct {
		Input, Output, Outcome string
		Warnings               []item.Warning
	}
	first, _, _ := strings.Cut(e.stdout, "\n")
	must(t, json.Unmarshal([]byte(first), &object))
	p, err := passport.Read(read(t, target))
	if err != nil || p.Item.Task != "hdr" || object.Input != small || object.Output != target || len(object.Warnings) == 0 {
		t.Errorf("%+v, task %s, %v", object, p.Item.Task, err)
	}

	// Without the source, the arrays beside the result replace it.
	must(t, os.Remove(small))
	e = ddiff(t, "replay", it[0], "--threads", "1")
	wantLine(t, e, "replay=bit-equal", "measurement=stored")
}

// TestRestoreAgainInAnotherForm asks for another quality, or for what the picture says beside its pixels: the restored picture that exists is not skipped.
func TestRestoreAgainInAnotherForm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	photo := filepath.Join(dir, "x.jpg")
	copyFile(t, filepath.Join("..", "..", "restore", "picture", "testdata", "camera.jpg"), photo)
	base := []string{"restore", photo, "--task", "denoise", "--steps", "3", "--threads", "1", "--unchecked"}
	for _, several := range [][]string{nil, {"--set", "sigma=0.04,0.05"}} {
		wantCode(t, ddiff(t, slices.Concat(base, several, []string{"--strip"})...), 0)
		wantCode(t, ddiff(t, slices.Concat(base, several, []string{"--strip"})...), 0)
		for _, changed := range [][]string{nil, {"--strip", "--quality", "80"}} {
			e := ddiff(t, slices.Concat(base, several, changed)...)
			wantCode(t, e, 3)
			wantMessage(t, e, "failed: ", "give --force to replace it")
			wantLine(t, e, "done=0")
		}
	}
	wantCode(t, ddiff(t, slices.Concat(base, []string{"--quality", "80", "--force"})...), 0)
	e := ddiff(t, append(base, "--quality", "80")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=1")
}

// TestRestoreSeveral restores pictures of one name with two settings, without the restored pictures in the folder.
func TestRestoreSeveral(t *testing.T) {
	t.Parallel()
	dir, into := t.TempDir(), filepath.Join(t.TempDir(), "new")
	write(t, filepath.Join(dir, "a.png"), grey(16))
	write(t, filepath.Join(dir, "a.npy"), array(t, -1, 1, 3, 16, 16))
	write(t, filepath.Join(dir, "b.restored.png"), grey(16))
	write(t, filepath.Join(dir, "notes.md"), []byte("no picture"))
	e := ddiff(t, "restore", dir, "--task", "hdr", "--steps", "3", "--threads", "1", "--set", "sigma=0.02,0.05", "--out", into)
	wantCode(t, e, 0)
	wantMessage(t, e, "skipped 1: neither a picture nor a .npy file: notes.md")
	wantMessage(t, e, "warning: "+filepath.Join(into, "a.npy.sigma=0.02.restored.png")+": 3 steps, the preset natural has 150")
	entries, err := os.ReadDir(into)
	must(t, err)
	var names []string
	for _, f := range entries {
		names = append(names, f.Name())
	}
	want := "a.npy.sigma=0.02.restored.png a.npy.sigma=0.05.restored.png a.png.sigma=0.02.restored.png a.png.sigma=0.05.restored.png"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the folder has %s, want %s", got, want)
	}
}

// TestRestoreRuns: several runs differ, and leave their mean and deviation; the result and the passport have the reason for the method.
func TestRestoreRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, out := filepath.Join(dir, "a.png"), filepath.Join(dir, "out")
	write(t, small, deepGrey(t))
	args := []string{"restore", small, "--task", "denoise", "--steps", "3", "--threads", "1", "--runs", "2", "--results", out}
	e := ddiff(t, args...)
	wantCode(t, e, 0)
	wantMessage(t, e, "method: ddiff, with noise in each step, so that the runs differ; one run without it was better in most tasks, see docs/data/averages.csv")
	for _, name := range []string{"run0", "run1", "mean", "deviation"} {
		wantLine(t, e, filepath.Join(dir, "a."+name+".restored.png"))
	}
	pixels := func(name string) []float32 {
		img, err := raster.Decode(read(t, filepath.Join(dir, "a."+name+".restored.png")))
		must(t, err)
		return img.Pix
	}
	first, second, mean := pixels("run0"), pixels("run1"), pixels("mean")
	differ := false
	for i := range mean {
		differ = differ || first[i] != second[i]
		if d := mean[i] - (first[i]+second[i])/2; d > 1e-4 || d < -1e-4 {
			t.Fatalf("pixel %d of the mean is off by %g", i, d)
		}
	}
	if !differ {
		t.Error("the runs are equal")
	}
	p, err := passport.Read(read(t, filepath.Join(dir, "a.run0.restored.png")))
	if must(t, err); !strings.Contains(p.Item.Choice, "docs/data/averages.csv") {
		t.Errorf("the passport has the reason %q", p.Item.Choice)
	}
	for _, r := range wantItems(t, out, 2) {
		if r.Item.Choice != p.Item.Choice {
			t.Errorf("the result has the reason %q", r.Item.Choice)
		}
	}
	for _, name := range []string{"mean", "deviation"} {
		e := ddiff(t, "verify", filepath.Join(dir, "a."+name+".restored.png"))
		wantCode(t, e, 3)
		wantLine(t, e, "passport: the file has none: it is no restored picture, or the mean or deviation of several")
	}
	// Restorations, mean and deviation are no inputs of the same command with a wider pattern.
	before, err := filepath.Glob(filepath.Join(dir, "*.png"))
	must(t, err)
	e = ddiff(t, slices.Concat([]string{"restore"}, before, args[2:])...)
	wantCode(t, e, 0)
	if after, err := filepath.Glob(filepath.Join(dir, "*.png")); err != nil || len(after) != len(before) {
		t.Errorf("%v\n%v restored again to %v, %v", e, before, after, err)
	}
	// A person's method has no reason, and equal runs are named.
	e = ddiff(t, "restore", small, "--task", "denoise", "--steps", "3", "--threads", "1", "--runs", "2", "--method", "ddiff", "--out", filepath.Join(dir, "into"))
	wantCode(t, e, 0)
	wantMessage(t, e, "all runs are equal: the settings draw no noise")
	wantMessage(t, ddiff(t, "restore", small, "--task", "denoise", "--steps", "3", "--threads", "1", "--prior", "bundled", "--out", filepath.Join(dir, "prior")), "method: ddiff, no measurement covers settings of your own")
	wantCode(t, ddiff(t, "restore", small, "--task", "denoise", "--method", "auto,ddiff"), 2)
}

// TestRestoreNames: names of files have what --set varies, not the settings that are chosen for it.
func TestRestoreNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), grey(16))
	e := ddiff(t, "restore", filepath.Join(dir, "a.png"), "--task", "denoise", "--threads", "1", "--unchecked", "--set", "sigma=0.01,0.05")
	wantCode(t, e, 0)
	wantLine(t, e, filepath.Join(dir, "a.sigma=0.01.restored.png"))
	wantLine(t, e, filepath.Join(dir, "a.sigma=0.05.restored.png"))
}

// TestRestorePhaseRuns: the runs of phase retrieval are rotated at random, so that the one with the smallest residual stands in place of their mean.
func TestRestorePhaseRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	truth, simulated, out := filepath.Join(dir, "truth.png"), filepath.Join(dir, "simulated"), filepath.Join(dir, "out")
	write(t, truth, grey(16))
	wantCode(t, ddiff(t, "run", truth, "--task", "phase_retrieval", "--size", "16", "--steps", "2", "--threads", "1", "--out", simulated), 0)
	y := filepath.Join(dir, "y.npy")
	for id := range wantItems(t, simulated, 1) {
		write(t, y, read(t, filepath.Join(simulated, item.Key(id, item.FileData))))
	}
	e := ddiff(t, "restore", y, "--task", "phase_retrieval", "--steps", "2", "--threads", "1", "--runs", "3", "--results", out)
	wantCode(t, e, 0)
	runs := slices.Collect(maps.Values(wantItems(t, out, 3)))
	best := slices.MinFunc(runs, func(a, b item.Result) int { return cmp.Compare(a.Metrics["residual"], b.Metrics["residual"]) })
	wantLine(t, e, "done=3 failed=0 dead=0 skipped=0 warned=3")
	p, err := passport.Read(read(t, filepath.Join(dir, "y.chosen.restored.png")))
	if must(t, err); p.Item.Run != best.Item.Run {
		t.Errorf("%v\nrun %d is chosen, want %d", e, p.Item.Run, best.Item.Run)
	}
	for _, name := range []string{"mean", "deviation"} {
		if _, err := os.Stat(filepath.Join(dir, "y."+name+".restored.png")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of rotated runs: %v", name, err)
		}
	}
}

// TestRestoreSeveralAgain: the names of several restorations have the varying settings only, also for pictures of different sizes, and
// a second call finds its own files. Another restoration under one of the names fails.
func TestRestoreSeveralAgain(t *testing.T) {
	t.Parallel()
	dir, into := t.TempDir(), filepath.Join(t.TempDir(), "new")
	write(t, filepath.Join(dir, "a.png"), grey(16))
	write(t, filepath.Join(dir, "b.png"), grey(24))
	args := []string{"restore", dir, "--task", "hdr", "--threads", "1", "--set", "sigma=0.02,0.05", "--out", into, "--steps"}
	for range 2 {
		e := ddiff(t, append(args, "3")...)
		wantCode(t, e, 0)
		wantLine(t, e, "done=4 failed=0 dead=0 skipped=0 warned=4")
		for _, name := range []string{"a.sigma=0.02", "a.sigma=0.05", "b.sigma=0.02", "b.sigma=0.05"} {
			if _, err := os.Stat(filepath.Join(into, name+".restored.png")); err != nil {
				t.Error(err)
			}
		}
	}
	before := read(t, filepath.Join(into, "a.sigma=0.02.restored.png"))
	e := ddiff(t, append(args, "4", "--results", filepath.Join(t.TempDir(), "out"))...)
	wantCode(t, e, 3)
	wantMessage(t, e, "a.png: write restored picture: ", "a.sigma=0.02.restored.png exists; give --force to replace it")
	if string(read(t, filepath.Join(into, "a.sigma=0.02.restored.png"))) != string(before) {
		t.Error("the restored picture was replaced")
	}
}

// TestRestoreWithoutCache: a restoration keeps no results, so that a user without a home directory needs no place for them.
func TestRestoreWithoutCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), grey(16))
	cmd := command(t, "restore", filepath.Join(dir, "a.png"), "--task", "hdr", "--steps", "3")
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME=", "HOME=")
	wantCode(t, end(t, cmd), 0)
}

// TestMeasurementRange: a .npy with a stated range, and the picture with the same values, are one measurement for run and restore.
func TestMeasurementRange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	img, err := raster.Decode(grey(16))
	must(t, err)
	values := make([]float32, len(img.Pix))
	for i, v := range img.Pix {
		values[i] = float32(raster.To8(v))
	}
	data, err := raster.EncodeNPY([]int{3, 16, 16}, values)
	must(t, err)
	out, y := filepath.Join(dir, "out"), filepath.Join(dir, "y")
	must(t, os.Mkdir(y, 0o755))
	write(t, filepath.Join(y, "picture.png"), grey(16))
	base := []string{"run", "--measurement", y, "--task", "hdr", "--steps", "3", "--threads", "1", "--out", out}
	wantCode(t, ddiff(t, base...), 0)
	write(t, filepath.Join(y, "array.npy"), data)
	wantCode(t, ddiff(t, append(base, "--measurement-range", "0,255")...), 0)
	arrays := map[string]string{}
	for id, r := range wantItems(t, out, 3) {
		name := r.Item.Name
		if r.Item.MeasurementRange != nil {
			name += " with a range"
		}
		arrays[name] = string(read(t, file(out, id, item.FileData)))
	}
	if a := arrays["array with a range"]; a != arrays["picture"] || a != arrays["picture with a range"] || a == "" {
		t.Errorf("the measurements of %d items differ", len(arrays))
	}
}

// TestRestoreUnwritable: a folder that cannot be written is noticed before anything is computed.
func TestRestoreUnwritable(t *testing.T) {
	t.Parallel()
	mine, closed := open(t), open(t)
	write(t, filepath.Join(mine, "a.png"), grey(16))
	write(t, filepath.Join(closed, "b.png"), grey(16))
	must(t, os.Chmod(closed, 0o555))
	results := open(t)
	must(t, os.Chmod(results, 0o777))
	base := []string{"restore", "--task", "hdr", "--steps", "3", "--threads", "1", "--results", filepath.Join(results, "out")}
	e := commandAsNobody(t, append(base, filepath.Join(mine, "a.png"), "--out", closed)...)
	wantCode(t, e, 6)
	wantMessage(t, e, "--out", closed, "permission denied")
	if _, err := os.Stat(filepath.Join(results, "out")); err == nil {
		t.Error("the refused restoration has results")
	}
	must(t, os.Chmod(mine, 0o777))
	e = commandAsNobody(t, append(base, filepath.Join(mine, "a.png"), filepath.Join(closed, "b.png"))...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: ", "b.png", "permission denied")
	wantLine(t, e, "done=1 failed=1 dead=0")
	wantItems(t, filepath.Join(results, "out"), 1)
}

// TestRestoreClosedFolder: a folder in a folder that cannot be read fails alone.
func TestRestoreClosedFolder(t *testing.T) {
	t.Parallel()
	dir := open(t)
	must(t, os.Chmod(dir, 0o777))
	closed := filepath.Join(dir, "closed")
	must(t, os.Mkdir(closed, 0o700))
	e := commandAsNobody(t, quick("--recursive", dir)...)
	wantCode(t, e, 2)
	wantMessage(t, e, "ddiff: restore: "+closed+": permission denied")
	write(t, filepath.Join(dir, "a.png"), grey(16))
	e = commandAsNobody(t, quick("--recursive", dir)...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: "+closed+": permission denied")
	wantLine(t, e, "done=1 failed=1")
}

// TestRestoreRefused: restorations that are refused, or fail, leave no folders.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		code int
		args []string
	}{
		"no runtime":   {grey(16), 4, []string{"--onnxruntime", "/nonexistent"}},
		"failed input": {grey(1), 3, nil},
		"no prior":     {grey(16), 7, []string{"--prior", "/nonexistent.onnx"}},
		"wrong device": {grey(16), 2, []string{"--threads", "-1"}},
	} {
		dir, own := t.TempDir(), t.TempDir()
		write(t, filepath.Join(dir, "a.png"), c.data)
		for _, more := range [][]string{{}, {"--results", filepath.Join(dir, "results")}} {
			cmd := command(t, append(append([]string{"restore", filepath.Join(dir, "a.png"), "--task", "hdr", "--out", filepath.Join(dir, "new", "folder")}, c.args...), more...)...)
			cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+own)
			e := end(t, cmd)
			wantCode(t, e, c.code)
			if c.code == 3 && len(more) > 0 {
				must(t, os.RemoveAll(filepath.Join(dir, "results"))) // the report of the failure
			}
			for _, root := range []string{dir, filepath.Join(own, "ddiff", "restore")} {
				entries, err := os.ReadDir(root)
				if err != nil && !os.IsNotExist(err) || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != "a.png" {
					t.Errorf("%s: %s has %v, %v", name, root, entries, err)
				}
			}
		}
	}
}
