package main_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/restore/raster"
)

// TestKeepStates: run and restore --results store x_t after the steps, and a contact sheet; a wrong list is refused.
func TestKeepStates(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	photo := filepath.Join(dir, "a.png")
	img := raster.New(3, 60, 64)
	for i := range img.Pix {
		img.Pix[i] = float32(i%64)/64 - 0.5
	}
	data, err := raster.EncodePNG(img)
	must(t, err)
	write(t, photo, data)
	check := func(out string, e ended, height int) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(out, "items", "*", "states.*"))
		must(t, err)
		if e.code != 0 || len(files) != 2 {
			t.Fatalf("%+v: %v", e, files)
		}
		data, err := regular.Read(files[0], 1<<20)
		must(t, err)
		states, err := raster.DecodeMeasurement(data)
		must(t, err)
		data, err = regular.Read(files[1], 1<<20)
		must(t, err)
		sheet, err := raster.Decode(data)
		must(t, err)
		if !slices.Equal(states.Shape, []int{3, 3, height, 64}) || sheet.Height != height || sheet.Width != 3*64 {
			t.Fatalf("states of %v, a sheet of %d×%d", states.Shape, sheet.Width, sheet.Height)
		}
		for i, v := range sheet.Plane(1)[2*64 : 3*64] { // the last state, rounded and clipped
			if d := v - max(-1, min(1, states.Data[(2*3+1)*height*64+i])); d > 0.01 || d < -0.01 {
				t.Fatalf("pixel %d of the sheet is %g, the state %g", i, v, states.Data[(2*3+1)*height*64+i])
			}
		}
	}
	settings := []string{"--task", "denoise", "--method", "dpir", "--steps", "4", "--threads", "1", "--keep-states", "every 2"}
	out := filepath.Join(dir, "run")
	check(out, ddiff(t, append([]string{"run", photo, "--size", "64", "--out", out}, settings...)...), 64)
	out = filepath.Join(dir, "restore")
	check(out, ddiff(t, append([]string{"restore", photo, "--unchecked", "--results", out}, settings...)...), 60)
	for text, want := range map[string]string{"every": "neither a list of steps", "every 0": "number of steps", "1,,2": "neither"} {
		if e := ddiff(t, "run", photo, "--task", "denoise", "--keep-states", text, "--out", filepath.Join(dir, "no")); e.code != 2 || !strings.Contains(e.stderr, want) {
			t.Errorf("%q: %+v", text, e)
		}
	}
	if e := ddiff(t, "restore", photo, "--task", "denoise", "--keep-states", "1"); e.code != 2 || !strings.Contains(e.stderr, "needs --results") {
		t.Errorf("%+v", e)
	}
}
