package run

import (
	"bytes"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

func auto(t *testing.T, change func(s *manifest.Spec, task *item.Task), name string) (*manifest.Spec, item.Task) {
	t.Helper()
	s := manifest.Default()
	task := item.Task{Name: name}
	if change != nil {
		change(s, &task)
	}
	s.Tasks = []item.Task{task}
	if err := chooseMethods(s, manifest.Catalogue{Methods: method.Builtin(), Operators: operator.Builtin()}, false); err != nil {
		t.Fatal(err)
	}
	return s, s.Tasks[0]
}

// known is a task after the files of the measured side have told the noise and the parameters: those that it has.
func known(s *manifest.Spec, task item.Task) item.Task { return knownAt(s, task, measuredSide) }

func knownAt(s *manifest.Spec, task item.Task, side int) item.Task {
	task = s.Effective(task)
	if task.Choose != nil {
		task.Choose(&task, side, side+100)
	}
	return task
}

// TestAutoTable: every row names a task, a parameter of it, a method with valid settings, and a file of measurements.
func TestAutoTable(t *testing.T) {
	t.Parallel()
	all, err := regions()
	if err != nil || len(all) < 10 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	c := manifest.Catalogue{Methods: method.Builtin(), Operators: operator.Builtin()}
	for _, a := range all {
		for file := range strings.SplitSeq(a.measured, " and ") {
			if _, err := os.Stat(filepath.Join("..", "..", "..", file)); err != nil {
				t.Errorf("%s: %v", a.task, err)
			}
		}
		for _, name := range strings.Fields(a.param) {
			if name != ownFile && !slices.Contains(c.OperatorParameters(item.Task{Name: a.task}).Names(), name) {
				t.Errorf("%s has no parameter %s", a.task, name)
			}
		}
		for _, runs := range []int{1, 4} {
			s, task := auto(t, func(s *manifest.Spec, task *item.Task) {
				s.Runs, s.Sigma = runs, item.Sigma((a.sigmaLow+a.sigmaHigh)/2)
				switch a.param {
				case "":
				case ownFile:
					s.Dataset.Kernel = "kernel.png"
				default:
					task.Params = map[string]float64{strings.Fields(a.param)[0]: (a.low + a.high) / 2}
				}
			}, a.task)
			task = known(s, task)
			want := a.measured
			if runs > 1 && a.runs == "noise" {
				want = "docs/data/averages.csv"
			}
			if !strings.Contains(task.Choice, want) {
				t.Errorf("%s at %v: %q, want %s", a.task, s.Sigma, task.Choice, want)
			}
			whole := s.Effective(task)
			whole.Method = s.Methods[0]
			if _, err := c.Methods.Resolve(method.RequestOf(whole), p.Schedule.Steps()); err != nil {
				t.Errorf("%s, %d runs: %v", a.task, runs, err)
			}
		}
	}
}

// TestAutoReasons: what no row covers is said, settings of a person remain, and several runs draw noise.
func TestAutoReasons(t *testing.T) {
	t.Parallel()
	if _, task := auto(t, nil, "motion_deblur"); !strings.HasPrefix(task.Choice, "ddiff, as measured in docs/data/") || len(task.Solver) > 0 {
		t.Errorf("covered: %+v", task)
	}
	if _, task := auto(t, func(_ *manifest.Spec, task *item.Task) { task.Params = map[string]float64{"size": 32} }, "inpaint_box"); !strings.Contains(task.Choice, "no measurement covers these") {
		t.Errorf("parameters outside: %q", task.Choice)
	}
	for name, params := range map[string]map[string]float64{
		"gaussian_deblur": {"std": 3, "size": 11}, "hdr": {"scale": 8}, "phase_retrieval": {"oversample": 1.5}, "colorize": {"green": 1}, "demosaic": {"red_row": 1},
	} {
		if s, task := auto(t, func(_ *manifest.Spec, task *item.Task) { task.Params = params }, name); !strings.Contains(known(s, task).Choice, "no measurement covers these") {
			t.Errorf("%s with %v, which was not measured: %q", name, params, task.Choice)
		}
	}
	mask := func(s *manifest.Spec, _ *item.Task) { s.Dataset.Mask = "mask.png" }
	if _, task := auto(t, mask, "inpaint_random"); !strings.Contains(task.Choice, "no measurement covers these") {
		t.Errorf("a mask from a file in place of random pixels: %q", task.Choice)
	}
	if _, task := auto(t, mask, "inpaint"); !strings.Contains(task.Choice, "as measured") {
		t.Errorf("a mask from a file: %q", task.Choice)
	}
	if _, task := auto(t, func(s *manifest.Spec, _ *item.Task) { s.Sigma = 0 }, "denoise"); !strings.Contains(task.Choice, "no measurement covers these") {
		t.Errorf("no noise: %q", task.Choice)
	}
	if _, task := auto(t, func(s *manifest.Spec, _ *item.Task) { s.Sigma = 0.5 }, "denoise"); !strings.Contains(task.Choice, "no measurement covers these") {
		t.Errorf("sigma outside: %q", task.Choice)
	}
	if _, task := auto(t, func(s *manifest.Spec, _ *item.Task) { s.Sigma = 0.01205 }, "denoise"); !strings.Contains(task.Choice, "as measured") {
		t.Errorf("sigma between two regions: %q", task.Choice)
	}
	for name, change := range map[string]func(s *manifest.Spec, task *item.Task){
		"steps": func(s *manifest.Spec, _ *item.Task) { s.Steps = 3 },
		"solver": func(_ *manifest.Spec, task *item.Task) {
			task.Solver = parameter.Values{"lambda": {Number: 1000}}
		},
	} {
		if _, task := auto(t, change, "denoise"); !strings.Contains(task.Choice, "no measurement covers settings of your own") {
			t.Errorf("%s of a person: %q", name, task.Choice)
		}
	}
	if _, task := auto(t, func(_ *manifest.Spec, task *item.Task) { task.Params = map[string]float64{"factor": 8} }, "super_resolution"); !strings.HasSuffix(task.Choice, "; with a factor of 8 the enlarged picture was better on 2 of 8 photographs at 64×64, by up to 0.2 dB") {
		t.Errorf("where a classical method may be better: %q", task.Choice)
	}
	if _, task := auto(t, nil, "sensor"); !strings.Contains(task.Choice, "no measurement covers this task") || task.Methods[0] != "ddiff" {
		t.Errorf("task outside: %q, %v", task.Choice, task.Methods)
	}
	spec, task := auto(t, func(s *manifest.Spec, task *item.Task) {
		s.Runs, s.Steps, task.Solver = 3, 7, parameter.Values{"lambda": {Number: 9}}
	}, "inpaint_box")
	if spec.Effective(task).Steps != 7 || task.Solver["lambda"].Number != 9 || task.Solver["noise"].Word != "full" {
		t.Errorf("several runs with settings of a person: %+v", task)
	}
}

// TestAutoChoosesByFile: what a picture tells, its noise or the quality of a JPEG file, decides about its settings and the reason.
func TestAutoChoosesByFile(t *testing.T) {
	t.Parallel()
	estimated := func(s *manifest.Spec, _ *item.Task) { s.Sigma = item.SigmaAuto }
	for _, c := range []struct {
		task   string
		sigma  float64
		params map[string]float64
		lambda float64 // 0: that of the preset
		want   string
	}{
		{"denoise", 0.005, nil, 4, "as measured in docs/data/regions.csv"},
		{"denoise", 0.01, nil, 8, "as measured in docs/data/regions.csv"},
		{"denoise", 0.05, nil, 0, "as measured in docs/data/quality.csv and docs/data/regions.csv"},
		{"denoise", 0.5, nil, 0, "no measurement covers these"},
		{"denoise", 0.0005, nil, 4, "no measurement covers these"}, // settings of the nearest noise
		{"gaussian_deblur", 0.02, map[string]float64{"std": 1}, 4, "as measured in docs/data/ascent.csv"},
		{"gaussian_deblur", 0.2, map[string]float64{"std": 1}, 4, "as measured in docs/data/ascent.csv"},
		{"gaussian_deblur", 0.02, map[string]float64{"std": 3}, 4, "as measured in docs/data/gaussian-width.csv"},
		{"gaussian_deblur", 0.05, map[string]float64{"std": 3}, 0, "as measured in docs/data/gaussian-width.csv"},
		{"gaussian_deblur", 0.2, map[string]float64{"std": 2.8}, 0, "as measured in docs/data/gaussian-width.csv"},
		{"gaussian_deblur", 0.02, map[string]float64{"std": 4.4}, 0, "as measured in docs/data/gaussian-width.csv"},
		{"gaussian_deblur", 0.05, map[string]float64{"std": 12}, 0, "as measured in docs/data/gaussian-width.csv"},
		{"gaussian_deblur", 0.02, map[string]float64{"std": 60}, 0, "no measurement covers these"},
		{"gaussian_deblur", 0.005, map[string]float64{"std": 3}, 4, "no measurement covers these"},
		{"jpeg", 0.05, map[string]float64{"quality": 95, "subsampling": 0}, 0, "as measured in docs/data/ascent.csv"},
		{"jpeg", 0.05, map[string]float64{"quality": 5}, 0, "no measurement covers these"},
	} {
		change := estimated
		if c.task == "jpeg" {
			change = nil // whose noise is no parameter
		}
		s, task := auto(t, change, c.task)
		if strings.Contains(task.Choice, "measure") {
			t.Errorf("%s: %q before a file is read", c.task, task.Choice)
		}
		task.Sigma, task.Params = new(item.Sigma(c.sigma)), c.params
		if task = known(s, task); !strings.Contains(task.Choice, c.want) || task.Solver["lambda"].Number != c.lambda {
			t.Errorf("%s at %g, %v: %q, lambda %g", c.task, c.sigma, c.params, task.Choice, task.Solver["lambda"].Number)
		}
	}
	// A blur counts in pixels: a Gaussian of 3/256 of the shorter side is 0.75 pixels wide at 64×64, 3 pixels at 256×256.
	s, task := auto(t, nil, "gaussian_deblur")
	for side, lambda := range map[int]float64{16: 0, 24: 4, 48: 4, 64: 0, 256: 0, 2048: 0} {
		if got := knownAt(s, task, side); got.Solver["lambda"].Number != lambda {
			t.Errorf("a Gaussian of 3/256 of %d pixels: %q, lambda %g, want %g", side, got.Choice, got.Solver["lambda"].Number, lambda)
		}
	}
	// A blur that a file states is not that of the parameter, and photons are in no measurement.
	own := func(s *manifest.Spec, _ *item.Task) { s.Dataset.Kernel, s.Sigma = "kernel.png", 0.2 }
	if _, task := auto(t, own, "gaussian_deblur"); !strings.HasSuffix(task.Choice, "no measurement covers these parameters and this noise") { // without a note
		t.Errorf("own kernel: %q", task.Choice)
	}
	if _, task := auto(t, func(s *manifest.Spec, _ *item.Task) { s.Photons = new(100.0) }, "denoise"); !strings.Contains(task.Choice, "no measurement covers these") {
		t.Errorf("photons: %q", task.Choice)
	}
	for photons, lambda := range map[float64]float64{40: 0, 2e5: 4} { // the settings are those for √(σ² + 2/N)
		if _, task := auto(t, func(s *manifest.Spec, _ *item.Task) { s.Photons, s.Sigma = new(photons), 0.001 }, "denoise"); task.Solver["lambda"].Number != lambda {
			t.Errorf("%g photons: lambda %g, want %g", photons, task.Solver["lambda"].Number, lambda)
		}
	}
	// Several runs of a task without measurements draw noise, too.
	if _, task := auto(t, func(s *manifest.Spec, _ *item.Task) { s.Runs = 2 }, "sensor"); task.Solver["noise"].Word != "full" {
		t.Errorf("several runs: %+v", task)
	}
}

// TestSpread: the mean, and the standard deviation in parts of the range, four times as large, up to white.
func TestSpread(t *testing.T) {
	t.Parallel()
	a, b := raster.New(1, 1, 3), raster.New(1, 1, 3)
	copy(a.Pix, []float32{0, 0.1, -1})
	copy(b.Pix, []float32{0, 0.2, 1})
	mean, deviation := spread([]*raster.Image{a, b})
	sd := 0.1 / math.Sqrt2 / 2 // in parts of the range
	for i, want := range [][2]float64{{0, -1}, {0.15, 2*4*sd - 1}, {0, 1}} {
		if math.Abs(float64(mean.Pix[i])-want[0]) > 1e-6 || math.Abs(float64(deviation.Pix[i])-want[1]) > 1e-6 {
			t.Errorf("pixel %d: mean %g, deviation %g, want %v", i, mean.Pix[i], deviation.Pix[i], want)
		}
	}
	if equal([]*raster.Image{a, b}) || !equal([]*raster.Image{a, a.Clone()}) {
		t.Error("equal images are told from others wrongly")
	}
}

// TestExamine: noise is denoised where the compression leaves it, strong JPEG compression is removed, and a clean picture is left alone.
func TestExamine(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "images", "coffee.png"))
	if err != nil {
		t.Fatal(err)
	}
	clean, err := raster.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	with := func(sigma float64) *raster.Image {
		img := clean.Clone()
		for i := range img.Pix {
			img.Pix[i] = min(1, max(-1, img.Pix[i]+float32(sigma*r.NormFloat64())))
		}
		return img
	}
	noisy, mostly := with(0.08), with(0.2)
	file := func(img *raster.Image, quality int) string {
		data, err := raster.EncodePNG(img)
		if err != nil {
			t.Fatal(err)
		}
		if quality > 0 {
			src, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := jpeg.Encode(&b, src, &jpeg.Options{Quality: quality}); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, path, task, found string
	}{
		{"clean", file(clean, 0), "", "256×256 pixels, PNG, noise of about 0.00"},
		{"noisy", file(noisy, 0), operator.Denoise, "PNG, noise of about 0.08 (10 of 255 levels)"},
		{"compressed", file(clean, 40), operator.JPEG, "JPEG of quality 40, noise of about 0.0"},
		{"slightly compressed", file(clean, 95), "", "JPEG of quality 95, noise of about 0.0"},
		{"noisy and compressed", file(noisy, 90), operator.Denoise, "JPEG of quality 90, noise of about 0.12"},
		{"noisy and more compressed", file(noisy, 70), operator.JPEG, "JPEG of quality 70, noise of about 0.12"},
		{"mostly noise, compressed", file(mostly, 65), operator.Denoise, "JPEG of quality 65, noise of about 0.2"},
		{"mostly noise, and strongly compressed", file(mostly, 20), operator.JPEG, "JPEG of quality 20, noise of about 0.2"},
	} {
		if found, task, err := examine(c.path, operator.Builtin()); err != nil || task != c.task || !strings.Contains(found, c.found) {
			t.Errorf("%s: %q, task %q, %v", c.name, found, task, err)
		}
	}
}
