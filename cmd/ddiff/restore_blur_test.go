package main_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	photos "ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
)

// unsharp writes a photograph as a lens out of focus, a disk with a radius of 2.5 pixels, sees it, with noise of 0.02, and returns its truth.
func unsharp(t *testing.T, path string) *raster.Image {
	t.Helper()
	x := picture(t, filepath.Join("..", "..", "examples", "unseen", "windmill.png"))
	y := x.Clone()
	spread(x, y, photos.DrawDisk(2.5).Data)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range y.Pix {
		y.Pix[i] += float32(0.02 * r.NormFloat64())
	}
	data, err := raster.EncodePNG(y)
	must(t, err)
	write(t, path, data)
	return x
}

// spread correlates x with a square kernel, whose border is mirrored without repeating the edge.
func spread(x, y *raster.Image, k []float32) {
	side := 1
	for side*side < len(k) {
		side++
	}
	mirrored := func(i, n int) int {
		i = max(i, -i)
		return min(i, 2*n-2-i)
	}
	plane := x.Height * x.Width
	for i := range y.Pix {
		sum := 0.0
		for a, w := range k {
			sum += float64(w) * float64(x.Plane(i / plane)[mirrored(i%plane/x.Width+a/side-side/2, x.Height)*x.Width+mirrored(i%plane%x.Width+a%side-side/2, x.Width)])
		}
		y.Pix[i] = float32(sum)
	}
}

// TestDiskWithoutCache: a kernel that cannot be drawn is named with its remedy.
func TestDiskWithoutCache(t *testing.T) {
	t.Parallel()
	photo := filepath.Join(t.TempDir(), "photo.png")
	unsharp(t, photo)
	for _, place := range [][]string{{"XDG_CACHE_HOME=/proc"}, {"XDG_CACHE_HOME=", "HOME="}} {
		cmd := command(t, "restore", photo, "--task", "gaussian_deblur", "--kernel", "disk:2")
		cmd.Env = append(cmd.Env, place...)
		e := end(t, cmd)
		wantCode(t, e, 2)
		wantMessage(t, e, "restore: draw the kernel of a disk: ", "; the user's folder for caches must be one that can be written")
	}
}

// TestRestoreUnknownBlur: the width of a blur is estimated, said, and good enough; a second run finds the same one.
func TestRestoreUnknownBlur(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	photo := filepath.Join(dir, "photo.png")
	truth := unsharp(t, photo)
	before := psnr(t, truth, picture(t, photo))
	for _, c := range []struct {
		name, says string
		args       []string
		gain       float64
	}{
		{"gaussian.png", "its blur has a standard deviation of about", []string{"--param", "std=auto"}, 0.5},
		{"disk.png", "its blur is about a disk with a radius of 2.", []string{"--kernel", "disk:auto"}, 1.5},
		{"stated.png", "", []string{"--kernel", "disk:2.5"}, 1.5},
	} {
		out := filepath.Join(dir, c.name)
		args := append([]string{"restore", photo, "--task", "gaussian_deblur", "--sigma", "0.02", "--out", out}, c.args...)
		e := ddiff(t, args...)
		wantCode(t, e, 0)
		after := psnr(t, truth, picture(t, out))
		t.Logf("%s: %.2f dB, %.2f dB before", c.name, after, before)
		if !strings.Contains(e.stderr, c.says) || after < before+c.gain {
			t.Errorf("%s: %.2f dB, %.2f dB before: %s", c.name, after, before, e.stderr)
		}
		if again := ddiff(t, args...); again.code != 0 || !strings.Contains(again.stdout, "skipped=1") {
			t.Errorf("%s again: %d, %s", c.name, again.code, again.stdout)
		}
	}
	// A campaign gets the same width. It is Gaussian, the blur is a disk: the check would ask for a higher sigma.
	e := ddiff(t, "restore", photo, "--unchecked", "--task", "gaussian_deblur", "--sigma", "0.02", "--param", "std=auto", "--results", filepath.Join(dir, "results"), "--out", filepath.Join(dir, "kept"))
	wantCode(t, e, 0)
	if after := psnr(t, truth, picture(t, filepath.Join(dir, "kept", "photo.restored.png"))); after < before+0.5 {
		t.Errorf("with results: %.2f dB", after)
	}
	// Without a task the blur is named, and left alone.
	e = ddiff(t, "restore", photo, "--out", filepath.Join(dir, "looked.png"))
	if !strings.Contains(e.stderr, "a blur") || !strings.Contains(e.stderr, "--task gaussian_deblur") {
		t.Errorf("without a task: %s", e.stderr)
	}
	for _, args := range [][]string{{"--task", "denoise", "--param", "std=auto"}, {"--task", "gaussian_deblur", "--kernel", "disk:wide"}, {"--task", "gaussian_deblur", "--kernel", "disk:0"}} {
		e := ddiff(t, append([]string{"restore", photo}, args...)...)
		wantCode(t, e, 2)
	}
	flat := filepath.Join(dir, "flat.png")
	data, err := raster.EncodePNG(raster.New(3, 64, 64))
	must(t, err)
	must(t, os.WriteFile(flat, data, 0o600))
	cut := filepath.Join(dir, "cut.png")
	write(t, cut, read(t, photo)[:2000])
	e = ddiff(t, "restore", flat, cut, "--task", "gaussian_deblur", "--param", "std=auto")
	wantCode(t, e, 3)
	wantMessage(t, e, flat, "the picture does not tell the width of a blur", "; give a number")
	if wantMessage(t, e, cut, "damaged data"); strings.Count(e.stderr, "give a number") != 1 { // a number would not help the damaged file
		t.Errorf("%v", e)
	}
}
