package job

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestWarnings marks doubtful results, each by one code, and no good one.
func TestWarnings(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	const side, sigma = 256, 0.05
	in := Loader{Engine: e}
	base := planned(t, in, workertest.Item(t, e, side, side))
	stripes := func(n int, contrast float32) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = contrast * float32(1-2*(i/16%2))
		}
		return out
	}
	nan := math.NaN()
	// 12288 entries of y: one standard deviation of their mean square is 1.3 % of sigma².
	for name, c := range map[string]struct {
		ratio          float64
		psnr, baseline float64
		x, y           float32 // contrasts
		preset         string
		steps          int
		values         bool // those of the preset
		want           string
	}{
		"good":                    {1, 25, 24, 0.3, 0.3, "", 5, true, ""},
		"fits a part of noise":    {0.45, 25, 24, 0.3, 0.3, "", 5, true, ""},
		"little misfit":           {1.55, nan, nan, 0.3, 0.3, "", 5, true, ""},
		"misfit":                  {1.6, nan, nan, 0.3, 0.3, "", 5, true, "residual"},
		"fits the noise":          {0.1, nan, nan, 0.3, 0.3, "", 5, true, "residual"},
		"worse":                   {1, 23.9, 24, 0.3, 0.3, "", 5, true, "worse"},
		"as the measurement":      {1, 24 - 1e-9, 24, 0.3, 0.3, "", 5, true, ""},
		"no measured image":       {1, 8, nan, 0.3, 0.3, "", 5, true, ""},
		"flat":                    {1, nan, nan, 0.05, 0.3, "", 5, true, "flat"},
		"as flat as y":            {1, nan, nan, 0.001, 0.06, "", 5, true, ""},
		"a fifth of the contrast": {1, nan, nan, 0.0595, 0.3, "", 5, true, ""}, // that of y without noise is 0.2958
		"less than a fifth":       {1, nan, nan, 0.0588, 0.3, "", 5, true, "flat"},
		"contrast as the noise":   {1, nan, nan, 0, 0.07, "", 5, true, ""},
		"contrast above noise":    {1, nan, nan, 0, 0.0715, "", 5, true, "flat"},
		"equal PSNR":              {1, 24, 24, 0.3, 0.3, "", 5, true, ""},
		"few steps of its preset": {1, nan, nan, 0.3, 0.3, "natural", 4, false, "steps"},
		"half of the steps":       {1, nan, nan, 0.3, 0.3, "natural", 5, false, ""},
		"preset of another prior": {1, nan, nan, 0.3, 0.3, "natural", 100, true, "preset"},
		"unknown preset":          {1, nan, nan, 0.3, 0.3, "of tomorrow", 5, true, ""},
		"all":                     {16, 1, 2, 0, 0.3, "natural", 4, true, "residual;worse;flat;steps;preset"},
	} {
		tk := &Job{Item: base.Item, Op: base.Op, Plan: base.Plan}
		tk.Item.Sigma, tk.Item.Preset, tk.Plan.Solver.Steps = sigma, c.preset, c.steps
		if !c.values {
			tk.Plan.Solver = tk.Plan.Solver.With("t_start", parameter.Number(7))
		}
		tk.Problem.Y, tk.Solution.X = stripes(tk.Op.MeasurementSize(), c.y), stripes(tk.Op.Image.Size(), c.x)
		residual := (c.ratio - 1) * sigma * sigma
		tk.Metrics = item.Metrics{"residual": residual, "psnr": c.psnr, "baseline_psnr": c.baseline}
		tk.warnResult(e)
		if got := item.WarningCodes(tk.Warnings); got != c.want {
			t.Errorf("%s: warnings %q, want %q", name, got, c.want)
		}
		for _, w := range tk.Warnings {
			if w.Text == "" || strings.Contains(w.Text, "\n") {
				t.Errorf("%s: text %q", name, w.Text)
			}
		}
	}
}

// TestFlatWithoutPicture: where the measurement is no picture, a restoration below a contrast of 0.02 is flat.
func TestFlatWithoutPicture(t *testing.T) {
	t.Parallel()
	tk := shaped(t, operator.PhaseRetrieval, 16, 16)
	tk.Problem.Y = make([]float32, tk.Op.MeasurementSize())
	for contrast, flat := range map[float32]bool{0.019: true, 0.021: false} {
		tk.Solution.X = make([]float32, tk.Op.Image.Size())
		for i := range tk.Solution.X {
			tk.Solution.X[i] = 0.5 + contrast*float32(1-2*(i%2))
		}
		if w := tk.warnFlat(); (w != nil) != flat || flat && (w.Code != photograph.WarnFlat || !strings.Contains(w.Text, "nearly flat: its contrast is 0.019")) {
			t.Errorf("contrast %g: warning %+v", contrast, w)
		}
	}
}

// TestFlatOfOwnOperator: the measurement of an operator file may have another scale than the image.
func TestFlatOfOwnOperator(t *testing.T) {
	t.Parallel()
	tk := shaped(t, operator.Denoise, 16, 16)
	tk.Op.Own = &operator.File{}
	tk.Problem.Y, tk.Solution.X = make([]float32, tk.Op.MeasurementSize()), make([]float32, tk.Op.Image.Size())
	for i := range tk.Solution.X {
		tk.Solution.X[i] = 0.3 * float32(1-2*(i%2))
		tk.Problem.Y[i] = 100 * tk.Solution.X[i]
	}
	if w := tk.warnFlat(); w != nil {
		t.Errorf("a restoration with contrast: %+v", w)
	}
}

// TestResidualOfJPEG: an image that fits a JPEG file without any residual is sound, one beyond the noise is not.
func TestResidualOfJPEG(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[float64]string{0: "", 0.01: "", 1: "", 1.6: photograph.WarnResidual} {
		tk := storedTask(t, 256, 256, nil)
		tk.Item.Sigma, tk.Problem.Y = 0.05, make([]float32, tk.Op.MeasurementSize())
		residual := (ratio - 1) * tk.Item.Sigma * tk.Item.Sigma
		got := ""
		if w := tk.warnResidual(item.Metrics{"residual": residual}, math.NaN()); w != nil {
			got = w.Code
		}
		if got != want {
			t.Errorf("%g times the variance: warning %q, want %q", ratio, got, want)
		}
	}
}

// TestPresetsOfPriors: only a preset with all its values is that of another prior, and one with another data step has no steps to compare with.
func TestPresetsOfPriors(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	plan := planned(t, Loader{Engine: e}, workertest.Item(t, e, 32, 32)).Plan
	natural, err := e.Preset(plan, "natural", 0.05)
	if err != nil || !natural.Foreign || natural.Steps != 10 {
		t.Errorf("natural: %+v, %v", natural, err)
	}
	if ffhq, err := e.Preset(plan, "ffhq", 0.05); err != nil || ffhq.Foreign || ffhq.Steps != 0 {
		t.Errorf("ffhq: %+v, %v", ffhq, err)
	}
	for _, file := range []string{prior.Bundled, "../../../priors/base.onnx"} {
		model, err := prior.Read(file)
		must(t, err)
		own, err := workertest.Engine(t, model, solver.Build{}).Preset(plan, "natural", 0.05)
		if err != nil || own.Foreign {
			t.Errorf("natural with %s: %+v, %v", file, own, err)
		}
	}
	if !natural.Row {
		t.Errorf("natural: %+v, want a row", natural)
	}
	if !slices.Contains(method.Builtin().Presets(), "natural") {
		t.Error("the preset of the bundled prior has another name")
	}
}

// TestFewStepsWithoutRow: the warning about few steps does not ascribe a method's default to a preset that has no row for the task.
func TestFewStepsWithoutRow(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	tk := planned(t, Loader{Engine: e}, workertest.Item(t, e, 32, 32))
	tk.Item.Preset, tk.Plan.Task = "ffhq", operator.Denoise
	tk.Problem.Y = make([]float32, tk.Op.MeasurementSize())
	tk.Solution.X = make([]float32, tk.Op.Image.Size())
	tk.warnResult(e)
	const want = "5 steps, the default of ddiff is 100; the preset ffhq has no settings of it for this task"
	if !slices.ContainsFunc(tk.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnSteps && w.Text == want }) {
		t.Errorf("warnings %+v, want %q", tk.Warnings, want)
	}
}

// TestIndependentEntries compares the number of independent entries with the variance of the mean square of drawn noise: of a grey
// picture, of one that is mirrored up to the size of the prior, and of both.
func TestIndependentEntries(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New("hdr", nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
	must(t, err)
	for name, c := range map[string]struct {
		picture *item.Picture
		// width and height of y's own part, and its channels that differ
		width, height, channels int
	}{
		"array":    {nil, 16, 16, 3},
		"colour":   {&item.Picture{Width: 16, Height: 16}, 16, 16, 3},
		"grey":     {&item.Picture{Width: 16, Height: 16, Grey: true}, 16, 16, 1},
		"mirrored": {&item.Picture{Width: 9, Height: 12}, 9, 12, 3},
		"both":     {&item.Picture{Width: 10, Height: 16, Grey: true}, 10, 16, 1},
	} {
		tk := &Job{Op: op}
		tk.Item.Picture, tk.Problem.Y = c.picture, make([]float32, tk.Op.MeasurementSize())
		const draws = 4000
		sum, square := 0.0, 0.0
		for i := range uint32(draws) {
			own := make([]float32, c.channels*c.height*c.width)
			noise.Normal(own, noise.Key{7}, noise.Operator, i, 1)
			whole := raster.Extend(&raster.Image{Channels: c.channels, Height: c.height, Width: c.width, Pix: own}, 16, 16)
			mean := 0.0
			for _, v := range whole.Pix {
				mean += float64(v) * float64(v) / float64(len(whole.Pix))
			}
			sum, square = sum+mean, square+mean*mean
		}
		variance := square/draws - (sum/draws)*(sum/draws)
		// The standard deviation of a variance of 4000 draws is 2.2 %.
		if got := tk.independentEntries(); math.Abs(got*variance/2-1) > 0.1 {
			t.Errorf("%s: %.1f entries, the noise has those of %.1f", name, got, 2/variance)
		}
	}
}

// TestSigmaAboveNoise: a stated noise level of more than twice that of a stored picture is doubted, where the level can be estimated.
func TestSigmaAboveNoise(t *testing.T) {
	t.Parallel()
	const side, level = 64, 0.02
	for name, c := range map[string]struct {
		task   string
		sigma  float64
		change func(j *Job)
		want   bool
	}{
		"true":                          {operator.Denoise, level, nil, false},
		"half":                          {operator.Denoise, level / 2, nil, false},
		"doubtful":                      {operator.Denoise, 1.7 * level, nil, false},
		"too large":                     {operator.Denoise, 2.5 * level, nil, true},
		"small":                         {operator.Denoise, 0.005, func(j *Job) { clear(j.Problem.Y) }, false},
		"mosaic, small":                 {operator.Demosaic, level, func(j *Job) { clear(j.Problem.Y) }, false},
		"small, but more than there is": {operator.Denoise, level, func(j *Job) { clear(j.Problem.Y) }, true},
		"mosaic":                        {operator.Demosaic, 2.5 * level, nil, true},
		"estimated":                     {operator.Denoise, 2.5 * level, func(j *Job) { j.Item.SigmaEstimated = true }, false},
		"simulated":                     {operator.Denoise, 2.5 * level, func(j *Job) { j.Item.Measurement = nil }, false},
		"with counts":                   {operator.Denoise, 2.5 * level, func(j *Job) { j.Item.Photons = 100 }, false},
		"no picture":                    {operator.PhaseRetrieval, 2.5 * level, nil, false},
		"rounded":                       {operator.Denoise, 2.5 * level, func(j *Job) { j.Item.Picture = &item.Picture{Width: side, Height: side, Bits: 4} }, false},
		"lost pixels": {"inpaint", 2.5 * level, func(j *Job) {
			j.draw = &operator.Draw{Name: "mask", Dims: []int{side, side}, Data: make([]float32, side*side)}
			for i := range j.draw.Data {
				j.draw.Data[i] = 1
				if i%side < side/2 {
					j.draw.Data[i], j.Problem.Y[i] = 0, 0
				}
			}
		}, true},
	} {
		tk := shaped(t, c.task, side, side)
		tk.Item.Sigma, tk.Problem.Y = c.sigma, make([]float32, tk.Op.MeasurementSize())
		noise.Normal(tk.Problem.Y, noise.Key{3}, noise.Operator, 0, level)
		if c.change != nil {
			c.change(tk)
		}
		w := tk.warnSigma(tk.estimate())
		if (w != nil) != c.want || w != nil && (w.Code != photograph.WarnSigma || !strings.Contains(w.Text, "sigma is 0.05, the noise of the picture is about 0.0") &&
			!strings.Contains(w.Text, "sigma is 0.02, the noise of the picture is about 0:")) {
			t.Errorf("%s: warning %+v, want %v", name, w, c.want)
		}
	}
}

// TestSigmaTooSmall: a picture with more noise than is stated has a warning, where the estimate is sure.
func TestSigmaTooSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level, sigma float64
		want         bool
	}{
		{0.05, 0.05, false}, {0.05, 0.04, false}, {0.05, 0.03, true}, {0.2, 0.05, true}, {0.015, 0.005, false}, {0.03, 0, true},
	} {
		tk := shaped(t, operator.Denoise, 64, 64)
		tk.Item.Sigma, tk.Problem.Y = c.sigma, make([]float32, tk.Op.MeasurementSize())
		noise.Normal(tk.Problem.Y, noise.Key{3}, noise.Operator, 0, c.level)
		w := tk.warnSigma(tk.estimate())
		if (w != nil) != c.want || w != nil && !strings.HasSuffix(w.Text, "noise may remain; give a larger sigma, or auto") {
			t.Errorf("noise %g, stated %g: %+v, want %v", c.level, c.sigma, w, c.want)
		}
	}
}

// TestSmallResidual: a restoration that fits the noise has a warning, unless little is stated; a smaller sigma is the remedy only where less noise is found.
func TestSmallResidual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sigma, found float64
		want         string // the end of the text; empty: no warning
	}{
		{0.05, 0.01, "or sigma is too large; give a smaller sigma, or auto"},
		{0.05, 0.049, "or sigma is too large"},
		{0.05, math.NaN(), "or sigma is too large"},
		{0.02, math.NaN(), ""},
		{0.02, 0.001, ""},
	} {
		tk := shaped(t, operator.Denoise, 64, 64)
		tk.Item.Sigma, tk.Problem.Y = c.sigma, make([]float32, tk.Op.MeasurementSize())
		residual := -0.95 * c.sigma * c.sigma
		w := tk.warnResidual(item.Metrics{"residual": residual}, c.found)
		if (w != nil) != (c.want != "") || w != nil && !strings.HasSuffix(w.Text, c.want) {
			t.Errorf("stated %g, found %g: %+v, want %q", c.sigma, c.found, w, c.want)
		}
	}
}

// TestOperatorTooWide: a stored measurement with fine details is no result of a wide blur, one with noise only may be.
func TestOperatorTooWide(t *testing.T) {
	t.Parallel()
	const side, level = 64, 0.02
	for name, c := range map[string]struct {
		task   string
		change func(j *Job)
		want   bool
	}{
		"noise":   {operator.GaussianDeblur, nil, false},
		"details": {operator.GaussianDeblur, checker, true},
		"more":    {operator.GaussianDeblur, func(j *Job) { j.Item.Sigma = level / 1.2 }, true},
		"rounded": {operator.GaussianDeblur, func(j *Job) {
			j.Item.Sigma, j.Item.Picture = level/1.2, &item.Picture{Width: side, Height: side, Bits: 5}
		}, false},
		"simulated": {operator.GaussianDeblur, func(j *Job) { checker(j); j.Item.Measurement = nil }, false},
		"no blur":   {operator.Denoise, checker, false},
		"enlarged":  {operator.SuperResolution, checker, false},
		"loud":      {operator.GaussianDeblur, func(j *Job) { bright(j); j.Item.Sigma = 0.5 }, false},
		"much less": {operator.SuperResolution, func(j *Job) { bright(j); j.Item.Sigma = 0.15 }, false},
		"a kernel":  {operator.MotionDeblur, checker, false},
	} {
		tk := shaped(t, c.task, side, side)
		tk.Item.Sigma, tk.Problem.Y = level, make([]float32, tk.Op.MeasurementSize())
		noise.Normal(tk.Problem.Y, noise.Key{3}, noise.Operator, 0, level)
		if c.change != nil {
			c.change(tk)
		}
		w := tk.warnOperator()
		if (w != nil) != c.want || w != nil && (w.Code != photograph.WarnOperator || !strings.Contains(w.Text, "where a blur of std 3 leaves nothing")) {
			t.Errorf("%s: warning %+v, want %v", name, w, c.want)
		}
	}
}

// bright adds a constant to the measurement.
func bright(j *Job) {
	for i := range j.Problem.Y {
		j.Problem.Y[i] += 0.8
	}
}

// checker adds a checkerboard of single pixels to the measurement.
func checker(j *Job) {
	width := j.Op.Measurement[len(j.Op.Measurement)-1]
	for i := range j.Problem.Y {
		j.Problem.Y[i] += 0.1 * float32((i+i/width)%2)
	}
}

// TestSigmaOfJPEG: a noise level that was estimated in a JPEG file has a warning, and a stated one is not compared with an estimate.
func TestSigmaOfJPEG(t *testing.T) {
	t.Parallel()
	picture := wave(64, 64)
	jpeg := orientedJPEG(t, picture, 90, 1)
	var lossless bytes.Buffer
	must(t, png.Encode(&lossless, picture))
	for _, c := range []struct {
		name      string
		data      []byte
		estimated bool
		want      string
	}{
		{"estimated", jpeg, true, "sigma 0.1 is the coarse noise, and texture, of a compressed file; if details go, give half as much, --sigma 0.05"},
		{"stated", jpeg, false, ""},
		{"estimated in a PNG file", lossless.Bytes(), true, ""},
		{"stated for a PNG file", lossless.Bytes(), false, "give a smaller sigma, or auto"},
	} {
		u := shaped(t, operator.Denoise, 64, 64)
		u.Item.Sigma, u.Item.SigmaEstimated = 0.1, c.estimated
		must(t, u.readPicture("a", c.data))
		if w := u.warnSigma(u.estimate()); (w != nil) != (c.want != "") || w != nil && (w.Code != photograph.WarnSigma || !strings.Contains(w.Text, c.want)) {
			t.Errorf("%s: warning %+v, want %q", c.name, w, c.want)
		}
	}
}

// TestCorrelatedNoise: noise that neighbouring pixels share is estimated, with a warning, and compared with a stated level.
func TestCorrelatedNoise(t *testing.T) {
	t.Parallel()
	const side, sigma = 64, 0.08
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "unseen", "dam.png"))
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	img, err = raster.Fit(img, "center_crop", side, 1)
	must(t, err)
	e := make([]float32, len(img.Pix)+side+1)
	noise.Normal(e, noise.Key{3}, noise.Operator, 0, sigma)
	for i := range img.Pix {
		img.Pix[i] = min(1, max(-1, img.Pix[i]+(e[i]+e[i+1]+e[i+side]+e[i+side+1])/2))
	}
	data, err = raster.EncodePNG(img)
	must(t, err)
	tk := shaped(t, operator.Denoise, side, side)
	tk.Problem.Y, tk.Item.SigmaEstimated = img.Pix, true
	look := Look{Operators: operator.Builtin(), Card: &prior.Card{Channels: 3, MultipleOf: 8}}
	tk.Item.Sigma, err = look.Sigma(Noisy{Task: operator.Denoise, Width: side, Height: side, Measurement: data})
	must(t, err)
	if tk.Item.Sigma < sigma || tk.Item.Sigma > 2*sigma {
		t.Errorf("the level is %g, of noise of %g", tk.Item.Sigma, sigma)
	}
	if w := tk.warnSigma(tk.estimate()); w == nil || w.Code != photograph.WarnSigma || !strings.Contains(w.Text, "neighbouring pixels share their noise") {
		t.Errorf("estimated: warning %+v", w)
	}
	tk.Item.SigmaEstimated = false
	for stated, want := range map[float64]string{tk.Item.Sigma: "", tk.Item.Sigma / 2: "give a larger sigma", 3 * tk.Item.Sigma: "give a smaller sigma"} {
		tk.Item.Sigma = stated
		if w := tk.warnSigma(tk.estimate()); (w != nil) != (want != "") || w != nil && !strings.Contains(w.Text, want) {
			t.Errorf("stated %g: warning %+v, want %q", stated, w, want)
		}
	}
}

// TestCoarseNoise: noise without colours and fine details, which the estimate does not find, is advised as sigma, and this sigma is then not doubted.
func TestCoarseNoise(t *testing.T) {
	t.Parallel()
	const side = 128
	tk := shaped(t, operator.Denoise, side, side)
	tk.Item.SigmaEstimated, tk.Item.Sigma = true, 0.005
	tk.Problem.Y = make([]float32, tk.Op.MeasurementSize())
	noise.Normal(tk.Problem.Y[:side*side], noise.Key{3}, noise.Operator, 0, 0.1)
	grey := tk.Problem.Y[:side*side]
	for range 2 { // a smooth field
		for i := range len(grey) - side - 1 {
			grey[i] = (grey[i] + grey[i+1] + grey[i+side] + grey[i+side+1]) / 4
		}
	}
	for c := range 2 {
		copy(tk.Problem.Y[(c+1)*side*side:], grey)
		for i := range grey {
			tk.Problem.Y[(c+1)*side*side+i] += 0.3 * float32(c) // no grey picture
		}
	}
	w := tk.warnSigma(math.NaN())
	if w == nil || !strings.Contains(w.Text, "give --sigma 0.0") {
		t.Fatalf("%+v", w)
	}
	var advised float64
	_, after, _ := strings.Cut(w.Text, "--sigma ")
	_, err := fmt.Sscanf(after, "%g,", &advised)
	must(t, err)
	tk.Item.SigmaEstimated, tk.Item.Sigma = false, advised
	if found := tk.estimate(); found > 0.01 || advised < 0.02 {
		t.Fatalf("found %g, advised %g", found, advised)
	}
	if w := tk.warnSigma(tk.estimate()); w != nil {
		t.Errorf("the advised sigma is doubted: %s", w.Text)
	}
	tk.Item.Sigma = 2 * advised
	if w := tk.warnSigma(tk.estimate()); w == nil {
		t.Error("twice the advised sigma is not doubted")
	}
}

// TestWarnMask: a mask that leaves less than half of a stored picture may be inverted; one of a simulation, or a drawn one, is meant.
func TestWarnMask(t *testing.T) {
	t.Parallel()
	for lost, want := range map[int]string{128: "", 129: "the mask drops 50 % of the pixels: is it inverted?", 256: "100 %"} {
		tk := shaped(t, operator.Inpaint, 16, 16)
		tk.Item.Mask, tk.draw = &item.Source{}, &operator.Draw{Name: "mask", Dims: []int{16, 16}, Data: make([]float32, 256)}
		for i := range 256 - lost {
			tk.draw.Data[i] = 1
		}
		if w := tk.warnMask(); (w != nil) != (want != "") || w != nil && (w.Code != photograph.WarnMask || !strings.Contains(w.Text, want)) {
			t.Errorf("%d lost: %+v, want %q", lost, w, want)
		}
		tk.Item.Measurement = nil
		if w := tk.warnMask(); w != nil {
			t.Errorf("%d lost in a simulation: %+v", lost, w)
		}
	}
}

// TestWarnGuess: colours of a stored picture, and a hole wider than a third of its shorter side, are a guess; many small holes are not.
func TestWarnGuess(t *testing.T) {
	t.Parallel()
	if w := shaped(t, operator.Colorize, 16, 16).warnGuess(); w == nil || w.Code != photograph.WarnGuess {
		t.Errorf("colours: %+v", w)
	}
	for name, c := range map[string]struct {
		lost func(x, y int) bool
		want string
	}{
		"five pixels": {func(x, y int) bool { return x >= 11 && y >= 3 && y < 8 }, ""},
		"six pixels":  {func(x, y int) bool { return x >= 10 && y >= 3 && y < 9 }, "a hole 6 pixels wide"},
		"a line":      {func(_, y int) bool { return y < 5 }, ""},
		"a grid":      {func(x, y int) bool { return x%2 == 1 || y%2 == 1 }, ""},
		"everything":  {func(_, _ int) bool { return true }, "a hole 16 pixels wide"},
	} {
		tk := shaped(t, operator.Inpaint, 24, 16)
		tk.Item.Mask, tk.draw = &item.Source{}, &operator.Draw{Name: "mask", Dims: []int{24, 16}, Data: make([]float32, 24*16)}
		for i := range tk.draw.Data {
			if !c.lost(i%16, i/16) {
				tk.draw.Data[i] = 1
			}
		}
		if w := tk.warnGuess(); (w != nil) != (c.want != "") || w != nil && (w.Code != photograph.WarnGuess || !strings.Contains(w.Text, c.want)) {
			t.Errorf("%s: %+v, want %q", name, w, c.want)
		}
		tk.Item.Measurement = nil
		if w := tk.warnGuess(); w != nil {
			t.Errorf("%s in a simulation: %+v", name, w)
		}
	}
}

// TestWarnClipped: a stored picture with noise that is mostly black and white has a warning, a grey or black one, one without noise and a truth have none.
func TestWarnClipped(t *testing.T) {
	t.Parallel()
	// Of a row of a hundred samples the first are black or white.
	picture := func(clipped int, light uint8) []byte {
		img := image.NewGray(image.Rect(0, 0, 100, 64))
		for i := range img.Pix {
			switch at := i % 100; {
			case at >= clipped:
				img.Pix[i] = 128
			case at%2 == 0:
				img.Pix[i] = light
			}
		}
		var out bytes.Buffer
		must(t, png.Encode(&out, img))
		return out.Bytes()
	}
	for _, c := range []struct {
		task    string
		clipped int
		sigma   float64
		want    bool
	}{
		{operator.Denoise, 52, 0.1, true}, {operator.Denoise, 40, 0.1, false}, {operator.Denoise, 52, 0.02, true}, {operator.Denoise, 52, 0.019, false},
		{operator.GaussianDeblur, 52, 0.1, false}, {operator.Demosaic, 52, 0.1, false},
	} {
		j := shaped(t, c.task, 100, 64)
		j.Item.Sigma = c.sigma
		must(t, j.readPicture("a", picture(c.clipped, 255)))
		w := j.warnClipped()
		if (w != nil) != c.want || w != nil && (w.Code != photograph.WarnClipped || !strings.Contains(w.Text, "52 % of the samples are black or white")) {
			t.Errorf("%+v: %+v", c, w)
		}
		if j.Item.Picture = nil; j.warnClipped() != nil {
			t.Errorf("%+v: a warning without a stored picture", c)
		}
		if must(t, j.readPicture("a", picture(c.clipped, 0))); j.warnClipped() != nil {
			t.Errorf("%+v: a warning for black without white", c)
		}
	}
}
