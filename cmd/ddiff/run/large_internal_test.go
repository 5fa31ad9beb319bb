package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	restorer "ddiff/restore/picture"
	"ddiff/restore/raster"
)

// TestChooseLarge: large noisy pictures have one evaluation of the network in each step, unless a person chose.
func TestChooseLarge(t *testing.T) {
	t.Parallel()
	large, small := operator.Shape{Channels: 3, Height: 3000, Width: 4000}, operator.Shape{Channels: 3, Height: 1000, Width: 1000}
	own := map[string]parameter.Value{"mirror": parameter.Word("average")}
	for _, c := range []struct {
		settings restorer.Settings
		image    operator.Shape
		want     string
	}{
		{restorer.Settings{Task: operator.Denoise, Method: "ddiff"}, large, "alternate"},
		{restorer.Settings{Task: operator.Denoise, Method: "ddiff"}, small, ""},
		{restorer.Settings{Task: operator.Denoise, Method: "ddiff", Solver: own}, large, "average"},
		{restorer.Settings{Task: operator.HDR, Method: "ddiff"}, large, ""},
	} {
		s := c.settings
		if chooseLarge(&s, c.image); s.Solver["mirror"].Word != c.want || (s.Choice != "") != (c.want == "alternate") {
			t.Errorf("%+v becomes %+v", c.settings, s)
		}
	}
}

// TestEstimate: the time of a picture in tiles follows from its first tiles, without the first one.
func TestEstimate(t *testing.T) {
	t.Parallel()
	e := estimate{picture: 1, began: time.Now().Add(-10 * time.Second), done: 0.05}
	p := restorer.Progress{Pictures: []int{0}, Steps: 2, Evaluations: 4, Tiles: 100, Share: 0.15}
	if got, want := e.of(p), "4 evaluations of the network in 100 tiles each, about 3m20s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if again := e.of(p); again != "" {
		t.Errorf("said twice: %q", again)
	}
	p.Pictures = []int{1}
	if first := e.of(p); first != "" || e.picture != 2 || e.told {
		t.Errorf("another picture: %q, %+v", first, e)
	}
}

// TestCropPreview: a preview is the middle of the picture, whose blur is as many pixels wide.
func TestCropPreview(t *testing.T) {
	t.Parallel()
	img := raster.New(3, 100, 60)
	for i := range img.Pix {
		img.Pix[i] = float32(i%256)/127.5 - 1
	}
	data, err := raster.EncodePNG(img)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.png"), filepath.Join(dir, "b.png")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	scale, err := cropPreview(from, to, 40)
	if err != nil || scale != 1.5 {
		t.Fatalf("scale %g, %v", scale, err)
	}
	if data, err = os.ReadFile(to); err != nil {
		t.Fatal(err)
	}
	crop, err := raster.Decode(data)
	if err != nil || crop.Height != 40 || crop.Width != 40 || crop.Plane(2)[39] != img.Plane(2)[30*60+49] {
		t.Errorf("%v: %+v", err, crop)
	}
	in := picture{scale: scale}
	params := map[string]float64{"std": 2}
	if got := in.scaled(params); got["std"] != 3 || params["std"] != 2 {
		t.Errorf("a blur of %v becomes %v", params, got)
	}
	if scale, err = cropPreview(from, to, 512); err != nil || scale != 1 {
		t.Errorf("of a small picture: %g, %v", scale, err)
	}
}
