package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// output writes an output with one item.
func output(t *testing.T, id, task string, level uint8, psnr, curve float64, measurement string) string {
	t.Helper()
	dir := t.TempDir()
	img := image.NewNRGBA(image.Rect(0, 0, 2, 2))
	img.Set(1, 1, color.NRGBA{level, 0, 0, 255})
	var picture bytes.Buffer
	if err := png.Encode(&picture, img); err != nil {
		t.Fatal(err)
	}
	item := filepath.Join(dir, "items", id)
	if err := os.MkdirAll(item, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"result.json":     fmt.Appendf(nil, `{"item": {"task": %q, "campaign": %q, "seed": 1}, "metrics": {"psnr": %g}}`, task, dir, psnr),
		"trace.json":      fmt.Appendf(nil, `{"gamma": [8, 8], "data_norm": [2, %g]}`, curve),
		"measurement.npy": []byte(measurement),
		"restored.png":    picture.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(item, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTolerance: every kind of difference is counted where it exceeds rounding.
func TestTolerance(t *testing.T) {
	t.Parallel()
	const linear, other = "inpaint_box", "hdr"
	one := func(equal bool) counts {
		if equal {
			return counts{1, 1}
		}
		return counts{1, 0}
	}
	for name, c := range map[string]struct {
		task        string
		level       uint8
		psnr, curve float64
		measurement string

		measured, image, curves bool
	}{
		"equal":                        {linear, 10, 20, 1, "y", true, true, true},
		"rounding":                     {linear, 11, 20.0005, 1.0001, "y", true, true, true},
		"another measurement":          {linear, 10, 20, 1, "z", false, true, true},
		"pixels":                       {linear, 12, 20, 1, "y", true, false, true},
		"darker pixels":                {linear, 8, 20, 1, "y", true, false, true},
		"psnr":                         {linear, 10, 19.99, 1, "y", true, false, true},
		"curve":                        {linear, 10, 20, 1.001, "y", true, true, false},
		"not linear":                   {other, 30, 20.1, 1.05, "y", true, true, true},
		"not linear, pixels":           {other, 99, 20, 1, "y", true, false, true},
		"not linear, psnr":             {other, 10, 20.3, 1, "y", true, false, true},
		"not linear, curve":            {other, 10, 20, 1.2, "y", true, true, false},
		"not linear, measurement":      {other, 10, 20, 1, "z", false, true, true},
		"another task, another result": {"denoise", 13, 21, 4, "z", false, false, false},
	} {
		var got comparison
		if err := got.outputs(output(t, "a", c.task, 10, 20, 1, "y"), output(t, "a", c.task, c.level, c.psnr, c.curve, c.measurement)); err != nil {
			t.Fatal(err)
		}
		want := comparison{one(true), one(c.measured), one(true), one(c.image), one(c.curves), 0}
		if c.level == 10 {
			want.samePixels = 1
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	var got comparison
	if err := got.outputs(output(t, "a", linear, 10, 20, 1, "y"), output(t, "b", linear, 10, 20, 1, "y")); err != nil {
		t.Fatal(err)
	}
	if want := (counts{2, 0}); got.identities != want {
		t.Errorf("other identities: %+v, want %+v", got.identities, want)
	}
}

// TestLooseTolerance: images of other sizes and results without a PSNR are no equal ones, even where single pixels may differ by any number.
func TestLooseTolerance(t *testing.T) {
	t.Parallel()
	rotated := output(t, "a", "hdr", 10, 20, 1, "y")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewNRGBA(image.Rect(0, 0, 4, 1))); err != nil {
		t.Fatal(err)
	}
	unmeasured := output(t, "a", "hdr", 10, 20, 1, "y")
	for path, data := range map[string][]byte{
		filepath.Join(rotated, "items", "a", "restored.png"):   picture.Bytes(),
		filepath.Join(unmeasured, "items", "a", "result.json"): []byte(`{"item": {"task": "hdr", "seed": 1}, "metrics": {"psnr": null}}`),
	} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, pair := range map[string][2]string{
		"another size": {output(t, "a", "hdr", 10, 20, 1, "y"), rotated}, "no PSNR": {unmeasured, unmeasured},
	} {
		var got comparison
		if err := got.outputs(pair[0], pair[1]); err != nil || got.images != (counts{1, 0}) {
			t.Errorf("%s: %+v (%v)", name, got.images, err)
		}
	}
}

// TestDifferentField: newer items may have more fields.
func TestDifferentField(t *testing.T) {
	t.Parallel()
	item := func(more ...any) map[string]any {
		out := map[string]any{"seed": 1.0, "solver": map[string]any{"steps": 3.0}}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	for want, newer := range map[string]map[string]any{
		"": item("preset", "natural"), "seed": item("seed", 2.0), "solver": item("solver", map[string]any{"steps": 4.0}),
	} {
		if got := differentField(item(), newer); got != want {
			t.Errorf("%v: field %q, want %q", newer, got, want)
		}
	}
	if got := differentField(item("prior", "p"), item()); got != "prior" {
		t.Errorf("a missing field: %q", got)
	}
	name, share := largestDeviation(map[string][]float64{"a": {1}, "b": {1, 2}}, map[string][]float64{"a": {1}, "b": {1}})
	if name != "b" || share <= 1 {
		t.Errorf("a shorter curve: %s, %g", name, share)
	}
}
