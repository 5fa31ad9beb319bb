package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/internal/cli"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	restorer "ddiff/restore/picture"
)

// TestChooseLarge: large noisy pictures have one evaluation of the network in each step, unless a person chose.
func TestChooseLarge(t *testing.T) {
	t.Parallel()
	const large, small = 3000, 1000 // pixels of a side
	own := map[string]parameter.Value{"mirror": parameter.Word("average")}
	for _, c := range []struct {
		settings item.Task
		side     int
		want     string
	}{
		{item.Task{Name: operator.Denoise, Method: "ddiff"}, large, "alternate"},
		{item.Task{Name: operator.Denoise, Method: "ddiff"}, small, ""},
		{item.Task{Name: operator.Denoise, Method: "ddiff", Solver: own}, large, "average"},
		{item.Task{Name: operator.HDR, Method: "ddiff"}, large, ""},
	} {
		s := c.settings
		if chooseLarge(&s, c.side, c.side); s.Solver["mirror"].Word != c.want || (s.Choice != "") != (c.want == "alternate") {
			t.Errorf("%+v becomes %+v", c.settings, s)
		}
	}
}

// TestEstimate: the time of a command is said before its first evaluation, from the pace of an earlier one, and again from the first steps or tiles where it was another one.
func TestEstimate(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	flags := cli.ComputeOptions{Device: "cpu"}
	p := restorer.Progress{Pictures: []int{0}, Steps: 2, Evaluations: 4, Tiles: 100, Item: &item.Item{Height: 100, Width: 200}, Cost: item.Cost{Network: 4}}
	var expected time.Duration
	begin := func() *estimate {
		return &estimate{pace: flags.Pace("sha", ""), items: 3, expect: func(d time.Duration) { expected = d }}
	}
	unknown := begin()
	if line := unknown.of(p); line != "" || expected != 0 {
		t.Errorf("without a pace: %q, %v", line, expected)
	}
	p.Share = 0.05
	if line := unknown.of(p); line != "" {
		t.Errorf("after the tile that compiles: %q", line)
	}
	unknown.began, p.Share = unknown.began.Add(-10*time.Second), 0.15
	if got, want := unknown.of(p), "4 evaluations of the network in 100 tiles each, about 3m20s; all 3 restorations about 10m0s, if they are alike"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if again := unknown.of(p); again != "" {
		t.Errorf("said twice: %q", again)
	}
	late := begin()
	late.picture, late.first, late.began = 1, true, time.Now().Add(-time.Minute)
	if line := late.of(restorer.Progress{Pictures: []int{0}, Step: 2, Steps: 2}); line != "" {
		t.Errorf("at the end: %q", line)
	}

	learned := flags.Pace("sha", "")
	learned.Observe(cli.Work(p.Item, p.Cost), 3)
	learned.Store()
	p.Share, p.Tiles = 0, 1
	known := begin()
	if got, want := known.of(p), "4 evaluations of the network, about 3s; all 3 restorations about 9s, if they are alike"; got != want || expected.Round(time.Second) != 9*time.Second {
		t.Errorf("%q, want %q; expected %v", got, want, expected)
	}
	for p.Step = 1; p.Step <= 2; p.Step++ {
		if line := known.of(p); line != "" {
			t.Errorf("step %d: %q", p.Step, line)
		}
		known.began = known.began.Add(-observed) // as foretold, but for 1.3
	}
	p.Pictures, p.Step = []int{1}, 0
	if line := known.of(p); line != "" {
		t.Errorf("on the second picture: %q", line)
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
