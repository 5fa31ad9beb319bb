package main_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// quick are arguments of restore that compute little.
func quick(args ...string) []string {
	return append([]string{"restore", "--task", "super_resolution", "--param", "factor=2", "--steps", "2", "--threads", "1"}, args...)
}

// TestRestoreKeepsInputs: an input is never replaced, not even with --force.
func TestRestoreKeepsInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.png"), filepath.Join(dir, "a.restored.png")
	write(t, a, grey(16))
	write(t, b, grey(24))
	link := filepath.Join(dir, "link.png") // another name of the same file
	must(t, os.Link(b, link))
	for _, args := range [][]string{{a, b}, {b, a}, {a, b, "--force"}, {a, link, "--force"}} {
		e := ddiff(t, quick(args...)...)
		wantCode(t, e, 2)
		wantMessage(t, e, "is an input, and would be the restored picture of "+a, "give --out DIR")
		if string(read(t, b)) != string(grey(24)) {
			t.Fatalf("%v replaced an input", args)
		}
	}
	wantCode(t, ddiff(t, quick(a, b, "--set", "sigma=0.3,0.2", "--out", filepath.Join(dir, "new"))...), 0) // other names
	c := filepath.Join(dir, "a.sigma=0.1.restored.png")
	write(t, c, grey(24))
	e := ddiff(t, quick(a, c, "--set", "sigma=0.1,0.2", "--force")...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: ", c+" is an input")
	if string(read(t, c)) != string(grey(24)) {
		t.Error("a restoration of several replaced an input")
	}
}

// TestRestoreOtherSettings: a picture that was restored with other settings is not "restored already".
func TestRestoreOtherSettings(t *testing.T) {
	t.Parallel()
	a := filepath.Join(t.TempDir(), "a.png")
	write(t, a, grey(16))
	wantCode(t, ddiff(t, quick(a, "--sigma", "0.02")...), 0)
	e := ddiff(t, quick(a, "--sigma", "0.02")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=1")
	for _, args := range [][]string{{"--sigma", "0.1"}, {"--sigma", "0.02", "--steps", "3"}, {"--sigma", "0.02", "--seed", "7"}} {
		e := ddiff(t, quick(append(args, a)...)...)
		wantCode(t, e, 3)
		wantMessage(t, e, "failed: ", "is not its restoration with these settings", "give --force")
	}
	e = ddiff(t, quick(a, "--sigma", "0.1", "--force", "--precision", "auto")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=1")
	// As `restore *.png` after an interruption.
	e = ddiff(t, quick(a, filepath.Join(filepath.Dir(a), "a.restored.png"), "--sigma", "0.1", "--precision", "auto")...)
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=2")
}

// TestRestoreOneFormat: pictures of one name whose restored pictures have one format have names with their extensions.
func TestRestoreOneFormat(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--format", "tiff"}, {"--preview", "32"}} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.png"), grey(32))
		write(t, filepath.Join(dir, "a.jpg"), asJPEG(t, grey(32), 95))
		e := ddiff(t, quick(append(args, dir)...)...)
		wantCode(t, e, 0)
		for _, name := range []string{"a.png.", "a.jpg."} {
			wantLine(t, e, filepath.Join(dir, name))
		}
	}
}

// TestRestoreImpossibleFiles: a place where no restored picture can be is named before anything is computed, and not taken for an existing file.
func TestRestoreImpossibleFiles(t *testing.T) {
	t.Parallel()
	dir, closed := open(t), open(t)
	a, notes, long := filepath.Join(dir, "a.png"), filepath.Join(dir, "notes.txt"), filepath.Join(dir, strings.Repeat("x", 250)+".png")
	write(t, a, grey(16))
	write(t, notes, nil)
	write(t, long, grey(16))
	must(t, os.Chmod(closed, 0o700))
	wantError := func(e ended, code int, parts ...string) {
		t.Helper()
		wantCode(t, e, code)
		wantMessage(t, e, parts...)
		if strings.Contains(e.stderr, " step ") || strings.Contains(e.stderr, "exists") {
			t.Errorf("%v", e)
		}
	}
	wantError(ddiff(t, quick(a, "--out", notes)...), 6, "--out", notes, "not a directory")
	wantError(commandAsNobody(t, quick(a, "--out", filepath.Join(closed, "new"))...), 6, "--out", closed, "permission denied")
	for _, args := range [][]string{{}, {"--force"}, {"--out", filepath.Join(dir, "new")}} {
		wantError(ddiff(t, quick(append(args, long)...)...), 3, "failed: ", "would have 263 bytes, at most 255 are possible; rename the picture, or give --out FILE")
	}
	several := filepath.Join(dir, strings.Repeat("y", 237)+".png") // whose names are too long with their settings only
	write(t, several, grey(16))
	for _, args := range [][]string{{"--set", "sigma=0.05,0.1"}, {"--runs", "2"}} {
		e := ddiff(t, quick(append(args, several)...)...)
		wantCode(t, e, 3)
		wantMessage(t, e, "failed: ", " bytes, at most 255 are possible; rename the picture, or give --out FILE")
	}
}

// TestRestoreLooksBesideBadFiles: without a task, a file that cannot be read fails alone, and is named for what it is where it is alone.
func TestRestoreLooksBesideBadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	squeezed, cut, text, y := filepath.Join(dir, "a.jpg"), filepath.Join(dir, "b.png"), filepath.Join(dir, "c.jpg"), filepath.Join(dir, "y.npy")
	write(t, squeezed, asJPEG(t, read(t, photograph("coffee")), 20))
	write(t, cut, read(t, photograph("coffee"))[:2000])
	write(t, text, []byte("text"))
	write(t, y, array(t, -1, 1, 3, 16, 16))
	e := ddiff(t, "restore", squeezed, cut, text, "--steps", "2", "--threads", "1")
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: "+cut, "damaged data")
	wantMessage(t, e, "failed: "+text, "not a PNG")
	wantLine(t, e, "done=1 failed=2")
	for _, bad := range []string{cut, text} {
		e := ddiff(t, "restore", bad, "--json")
		wantCode(t, e, 2)
		wantMessage(t, e, "ddiff: restore: "+bad+": ", "damaged data")
	}
	e = ddiff(t, "restore", y)
	wantCode(t, e, 2)
	wantMessage(t, e, y+": it is an array, whose degradation is not looked for: give one --task NAME")
}

// TestRestoreMixedFolder: without a task, each picture of a folder gets its own treatment, and one that needs none is left as it is.
func TestRestoreMixedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	photo := read(t, photograph("coffee"))
	write(t, filepath.Join(dir, "clean.png"), photo)
	write(t, filepath.Join(dir, "noisy.png"), noisyPicture(t, 0.08))
	write(t, filepath.Join(dir, "squeezed.jpg"), asJPEG(t, photo, 20))
	write(t, filepath.Join(dir, "y.npy"), array(t, -1, 1, 3, 16, 16))
	write(t, filepath.Join(dir, "notes.txt"), []byte("text"))
	e := ddiff(t, "restore", dir, "--steps", "4", "--threads", "1")
	wantCode(t, e, 3)
	wantMessage(t, e, "noisy.png: ", "restored with --task denoise")
	wantMessage(t, e, "squeezed.jpg: ", "restored with --task jpeg")
	wantMessage(t, e, "failed: ", "y.npy: it is an array")
	wantMessage(t, e, "skipped 1: neither noise nor strong compression was found", ": clean.png")
	wantMessage(t, e, "skipped 1: neither a picture nor a .npy file: notes.txt")
	wantLine(t, e, "done=2 failed=1 dead=0 skipped=1")
	if err := os.Remove(filepath.Join(dir, "y.npy")); err != nil {
		t.Fatal(err)
	}
	e = ddiff(t, "restore", dir, "--steps", "4", "--threads", "1")
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=3")
}

// TestRestoreGroups: no task of a command overwrites an input of another one, hides a file that cannot be read, or stops the others.
func TestRestoreGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	photo := read(t, photograph("coffee"))
	noisy, sound, low, cut := filepath.Join(dir, "x.png"), filepath.Join(dir, "x.restored.png"), filepath.Join(dir, "low.jpg"), filepath.Join(dir, "cut.png")
	write(t, noisy, noisyPicture(t, 0.08))
	write(t, sound, photo)
	write(t, low, asJPEG(t, photo, 20))
	write(t, cut, photo[:2000])
	e := ddiff(t, "restore", noisy, sound, "--force", "--steps", "4", "--threads", "1")
	wantCode(t, e, 2)
	wantMessage(t, e, sound+" is an input, and would be the restored picture of "+noisy)
	if !bytes.Equal(read(t, sound), photo) {
		t.Error("an input was overwritten")
	}
	for _, asJSON := range []bool{false, true} {
		args := []string{"restore", sound, cut}
		if asJSON {
			args = append(args, "--json")
		}
		e = ddiff(t, args...)
		wantCode(t, e, 3)
		if said := e.stdout + e.stderr; strings.Count(said, "cut.png: ") != 1 {
			t.Errorf("the damaged file is not named once: %s", said)
		}
	}
	e = ddiff(t, "restore", low, noisy, "--preview", "32", "--steps", "4", "--threads", "1", "--out", filepath.Join(dir, "out"))
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: "+low, "needs the whole picture")
	wantLine(t, e, "done=1 failed=1")
}

// TestRestoreNamesFlag: a wrong number of steps is one line that names its flag, also where the settings are chosen for the task.
func TestRestoreNamesFlag(t *testing.T) {
	t.Parallel()
	wantRefusals(t, []string{"restore", photograph("chelsea"), "--task", "denoise", "--out", t.TempDir(), "--steps"}, []refusal{
		{[]string{"1"}, 2, "ddiff: --steps: 1 is out of range, want at least 2"},
		{[]string{"5000"}, 2, "ddiff: --steps: 5000 is out of range, want 2 to 1000"},
		{[]string{"1", "--method", "dpir"}, 2, "ddiff: --steps: 1 is out of range, want at least 2"},
	})
}

// TestRestoreGrey: a grey picture is the measurement of colorize and demosaic, and the restored picture is in colour. A mask of another size
// suits inpaint. Passports hold, and a replay gives the same bits.
func TestRestoreGrey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, mask := filepath.Join(dir, "small.png"), filepath.Join(dir, "mask.npy")
	write(t, small, deepGrey(t)) // 18×12 pixels
	write(t, mask, array(t, 1, 1, 4, 6))
	for task, c := range map[string]struct {
		args  []string
		model color.Model
	}{
		"colorize": {nil, color.RGBA64Model}, "demosaic": {[]string{"--param", "red_row=1"}, color.RGBA64Model},
		"denoise": {nil, color.Gray16Model}, "inpaint": {[]string{"--mask", mask}, color.Gray16Model},
	} {
		into := filepath.Join(dir, task)
		e := ddiff(t, append([]string{"restore", small, "--task", task, "--steps", "3", "--threads", "1", "--out", into}, c.args...)...)
		wantCode(t, e, 0)
		target := filepath.Join(into, "small.restored.png")
		config, err := png.DecodeConfig(bytes.NewReader(read(t, target)))
		if err != nil || config.Width != 18 || config.Height != 12 || config.ColorModel != c.model {
			t.Errorf("%s: the restored picture has %d×%d pixels of %v, %v", task, config.Width, config.Height, config.ColorModel, err)
		}
		wantCode(t, ddiff(t, "verify", target), 0)
		wantLine(t, ddiff(t, "replay", target, "--threads", "1"), "replay=bit-equal")
	}
}

// TestRunGrey: simulated measurements of one channel, and their report.
func TestRunGrey(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	e := ddiff(t, "run", "--images", photographs(t, "coffee"), "--size", "32", "--task", "colorize,demosaic,super_resolution_area,denoise",
		"--method", "ddiff,ddrm", "--steps", "3", "--threads", "1", "--out", out)
	wantCode(t, e, 0)
	for _, r := range wantItems(t, out, 8) {
		if !r.Metrics.Has("psnr") || !r.Metrics.Has("baseline_psnr") || !r.Metrics.Has("residual") {
			t.Errorf("%s, %s: metrics %+v", r.Item.Task, r.Item.Method, r.Metrics)
		}
	}
	wantCode(t, ddiff(t, "verify", out), 0)
	wantCode(t, ddiff(t, "report", out, "--format", "html", "--out", filepath.Join(t.TempDir(), "page")), 0)
	e = ddiff(t, "run", "--images", photographs(t, "coffee"), "--size", "32", "--task", "all", "--dry-run", "--json", "--out", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, `"demosaic"`) || strings.Contains(e.stdout, `"inpaint"`) {
		t.Errorf("--task all has the tasks of %s", e.stdout)
	}
	e = ddiff(t, "run", "--images", photographs(t, "coffee"), "--size", "32", "--task", "inpaint", "--steps", "3", "--threads", "1", "--out", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 2)
	wantMessage(t, e, "task inpaint needs a mask; give --mask, dataset.mask of the campaign file, or the column mask of a list")
}

// jpegFile is a JPEG file of 20×12 pixels with the tables of a quality.
func jpegFile(t *testing.T, quality int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 20, 12))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7 % 251)
	}
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, img, &jpeg.Options{Quality: quality}))
	return buf.Bytes()
}

// TestRestoreJPEG restores files of different qualities in one call: each item has the quality of its file, and the same quality, if it is given,
// makes no difference.
func TestRestoreJPEG(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, quality := range map[string]int{"a.jpg": 10, "b.jpg": 40} {
		write(t, filepath.Join(dir, name), jpegFile(t, quality))
	}
	base := []string{"restore", "--quiet", "--threads", "1", "--steps", "3", "--task", "jpeg", "--sigma", "0.005", "--force"}
	all, one := filepath.Join(dir, "all"), filepath.Join(dir, "one")
	wantCode(t, ddiff(t, append(base, dir, "--results", all)...), 0)
	found := map[string]string{}
	for id, r := range wantItems(t, all, 2) {
		quality := map[string]float64{"a.jpg": 10, "b.jpg": 40}[filepath.Base(r.Item.Name)]
		if r.Item.Params["quality"] != quality || r.Item.Params["subsampling"] != 2 {
			t.Errorf("%s: parameters %v", r.Item.Name, r.Item.Params)
		}
		found[filepath.Base(r.Item.Name)] = id
	}
	if img := picture(t, filepath.Join(dir, "a.restored.jpg")); img.Width != 20 || img.Height != 12 {
		t.Errorf("%d×%d pixels", img.Width, img.Height)
	}
	wantCode(t, ddiff(t, append(base, filepath.Join(dir, "a.jpg"), "--param", "quality=10", "--results", one)...), 0)
	for id := range wantItems(t, one, 1) {
		if id != found["a.jpg"] {
			t.Error("the stated quality of the file changes the item")
		}
	}
}

// A JPEG file of a grey picture, whose noise level methods take for larger, has none: 0 stays in the range of the setting.
func TestRestoreGreyJPEGWithoutNoise(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grey.jpg")
	img := image.NewGray(image.Rect(0, 0, 20, 12))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7 % 251)
	}
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, img, nil))
	write(t, file, buf.Bytes())
	wantCode(t, ddiff(t, "restore", file, "--quiet", "--threads", "1", "--steps", "3", "--task", "jpeg", "--sigma", "0"), 0)
}

// TestRestoreKeepsNames: a restored picture has the same name in a later command with other neighbours, and a new neighbour takes none of these.
func TestRestoreKeepsNames(t *testing.T) {
	t.Parallel()
	dir, into := t.TempDir(), t.TempDir()
	add := func(name string, size int) { write(t, filepath.Join(dir, name), grey(size)) }
	want := func(skipped int, names ...string) {
		t.Helper()
		e := ddiff(t, quick(dir, "--out", into)...)
		wantCode(t, e, 0)
		wantLine(t, e, fmt.Sprintf("done=%d failed=0 dead=0 skipped=%d", len(names)-skipped, skipped))
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(into, name+".restored.png")); err != nil {
				t.Error(err)
			}
		}
	}
	add("b.png", 16)
	want(0, "b")
	add("b.bmp", 24) // it is a PNG file
	want(1, "b", "b.bmp")
	add("B.bmp", 32)
	want(2, "b", "b.bmp", "B.bmp-2")
	must(t, os.Remove(filepath.Join(dir, "b.bmp")))
	must(t, os.Remove(filepath.Join(dir, "b.png")))
	want(1, "B.bmp-2")
}
