package main_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/raster"
)

// TestPreviewOfJPEG: the preview of a noisy JPEG file has the noise level of the whole file, and none of the advice for files without compression; a stated level neither.
func TestPreviewOfJPEG(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := picture(t, filepath.Join("..", "..", "examples", "unseen", "windmill.png"))
	r := rand.New(rand.NewPCG(5, 6))
	for i := range x.Pix {
		x.Pix[i] += float32(0.08 * r.NormFloat64())
	}
	data, err := raster.EncodePNG(x)
	must(t, err)
	photo := filepath.Join(dir, "photo.jpg")
	write(t, photo, asJPEG(t, data, 85))
	said := func(args ...string) (sigma float64, warnings []string) {
		t.Helper()
		e := ddiff(t, append([]string{"restore", photo, "--json", "--force", "--task", "denoise", "--threads", "1", "--out", dir}, args...)...)
		wantCode(t, e, 0)
		var out struct {
			Sigma    float64
			Warnings []struct{ Code, Text string }
		}
		line, _, _ := strings.Cut(e.stdout, "\n")
		must(t, json.Unmarshal([]byte(line), &out))
		for _, w := range out.Warnings {
			warnings = append(warnings, w.Code+": "+w.Text)
		}
		return out.Sigma, warnings
	}
	for _, sigma := range []string{"auto", "0.08"} {
		level, whole := said("--sigma", sigma)
		partLevel, part := said("--sigma", sigma, "--preview", "96")
		if level != partLevel || !slices.Equal(whole, part) || sigma == "auto" && len(whole) == 0 {
			t.Errorf("sigma %s: of the whole file %g, %q; of the preview %g, %q", sigma, level, whole, partLevel, part)
		}
	}
}

// TestPreviewBesideBadFiles: a file without a preview fails, and leaves the others theirs.
func TestPreviewBesideBadFiles(t *testing.T) {
	t.Parallel()
	for _, sigma := range []string{"0.05", "auto"} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a.png"), filepath.Join(dir, "b.png")
		write(t, a, read(t, photograph("coffee"))[:2000])
		copyFile(t, photograph("coffee"), b)
		e := ddiff(t, "restore", a, b, "--task", "denoise", "--steps", "2", "--threads", "1", "--preview", "32", "--sigma", sigma)
		wantCode(t, e, 3)
		wantMessage(t, e, "failed: "+a+": preview: ", "damaged data")
		wantLine(t, e, "b.preview.restored.png")
		wantLine(t, e, "done=1 failed=1")
	}
}

// TestPreviewNames: the previews of several settings have names that state the settings of the whole picture, and are no inputs of the same command.
func TestPreviewNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copyFile(t, photograph("coffee"), filepath.Join(dir, "a.png"))
	for range 2 {
		e := ddiff(t, "restore", dir, "--task", "gaussian_deblur", "--set", "std=2,3.3", "--steps", "2", "--threads", "1", "--preview", "48")
		wantCode(t, e, 0)
		wantLine(t, e, filepath.Join(dir, "a.preview.std=2.restored.png"))
		wantLine(t, e, filepath.Join(dir, "a.preview.std=3.3.restored.png"))
		wantLine(t, e, "done=2 failed=0 dead=0 skipped=0")
		wantMessage(t, e, "of the preview is std 3.3 of the whole picture")
	}
	e := ddiff(t, "restore", filepath.Join(dir, "a.png"), filepath.Join(dir, "a.preview.std=2.restored.png"), "--task", "denoise", "--steps", "2", "--threads", "1", "--preview", "48")
	wantCode(t, e, 0)
	wantLine(t, e, "done=1 failed=0 dead=0 skipped=1")
	whole := filepath.Join(dir, "a.restored.png") // not of a preview
	wantCode(t, ddiff(t, "restore", filepath.Join(dir, "a.png"), "--task", "denoise", "--steps", "2", "--threads", "1"), 0)
	e = ddiff(t, "restore", filepath.Join(dir, "a.png"), whole, "--task", "denoise", "--steps", "2", "--threads", "1", "--preview", "48")
	wantCode(t, e, 0)
	wantLine(t, e, "done=1 failed=0 dead=0 skipped=1")
}

// TestPreviewReplacesPreviews: a preview replaces an earlier one, and no other file.
func TestPreviewReplacesPreviews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, target := filepath.Join(dir, "a.png"), filepath.Join(dir, "a.preview.restored.png")
	copyFile(t, photograph("coffee"), a)
	preview := []string{"restore", a, "--task", "denoise", "--steps", "2", "--threads", "1", "--preview"}
	for _, other := range []func(){
		func() { copyFile(t, a, target) },
		func() { // restores a picture of that name
			small := filepath.Join(dir, "a.preview.png")
			write(t, small, grey(32))
			wantCode(t, ddiff(t, quick(small)...), 0)
		},
	} {
		other()
		before := read(t, target)
		e := ddiff(t, append(preview, "32")...)
		wantCode(t, e, 3)
		wantMessage(t, e, "failed: ", target+" exists; give --force to replace it")
		if string(read(t, target)) != string(before) {
			t.Error("another file than a preview was replaced")
		}
		must(t, os.Remove(target))
	}
	for _, side := range []int{32, 48} {
		wantCode(t, ddiff(t, append(preview, strconv.Itoa(side))...), 0)
		if img := picture(t, target); img.Width != side {
			t.Errorf("the preview has %d pixels, want %d", img.Width, side)
		}
	}
}

// TestPreviewOfTooWideBlur: the preview of a blur that is stated too wide names the width of the whole picture, which is half as wide in the preview's unit.
func TestPreviewOfTooWideBlur(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	wantCode(t, restore(t, "--images", photograph("coffee"), "--task", "gaussian_deblur", "--param", "std=2", "--sigma", "0.01", "--size", "256", "--steps", "2", "--out", out), 0)
	copyFile(t, filepath.Join(folderOf(t, out, "gaussian_deblur"), "measurement.png"), filepath.Join(dir, "a.png"))
	for flag, want := range map[string]string{"--threads=1": "restored with std 2.2", "--unchecked": "; try std 2.2"} {
		e := ddiff(t, "restore", filepath.Join(dir, "a.png"), "--task", "gaussian_deblur", "--param", "std=5", "--sigma", "0.01", "--preview", "128", "--quiet", "--json", flag)
		wantCode(t, e, 0)
		wantLine(t, e, "std 5 is wider than the blur of the picture", want)
	}
}

// TestPreviewIsNotReplayed: its measurement is gone, and the message has another remedy than the source.
func TestPreviewIsNotReplayed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := filepath.Join(dir, "a.png")
	copyFile(t, photograph("coffee"), a)
	wantCode(t, ddiff(t, "restore", a, "--task", "denoise", "--steps", "2", "--threads", "1", "--unchecked", "--preview", "32"), 0)
	e := ddiff(t, "replay", filepath.Join(dir, "a.preview.restored.png"), "--root", dir)
	wantCode(t, e, 2)
	wantMessage(t, e, "it is a preview of "+a+", whose middle was a temporary file; run its ddiff restore --preview again, or replay the whole restored picture")
}

// TestPreviewOfRuns: the mean and the deviation of a preview follow its runs, and replace no restored picture.
func TestPreviewOfRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := filepath.Join(dir, "a.png")
	write(t, a, grey(64))
	preview := []string{"restore", a, "--task", "denoise", "--method", "ddiff", "--steps", "2", "--threads", "1", "--runs", "2", "--preview"}
	for _, side := range []int{32, 48} {
		wantCode(t, ddiff(t, append(preview, strconv.Itoa(side))...), 0)
		for _, name := range []string{"run0", "run1", "mean", "deviation"} {
			if img := picture(t, filepath.Join(dir, "a.preview."+name+".restored.png")); img.Width != side {
				t.Errorf("%s has %d pixels, want %d", name, img.Width, side)
			}
		}
	}
	other, mean := filepath.Join(dir, "a.preview.mean.png"), filepath.Join(dir, "a.preview.mean.restored.png")
	write(t, other, grey(32))
	wantCode(t, ddiff(t, quick(other, "--force")...), 0)
	before := read(t, mean)
	e := ddiff(t, append(preview, "32")...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: ", mean+" exists; give --force to replace it")
	if string(read(t, mean)) != string(before) {
		t.Error("a restored picture was replaced by a mean")
	}
}
