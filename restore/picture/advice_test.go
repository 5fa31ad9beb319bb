package picture_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/picture"
)

var (
	number   = regexp.MustCompile(`(?:--sigma|try sigma) ([0-9.]+)`)
	width    = regexp.MustCompile(`try std ([0-9.]+)`)
	estimate = regexp.MustCompile(`(smaller|larger) sigma.* or auto`)
)

// follow returns the task of a picture with what the text of a warning advises, and a noise level on the side of the present one that it names, 0 for none; false for a text without
// a setting.
func follow(t *testing.T, task item.Task, text string) (_ item.Task, sigma float64, ok bool) {
	t.Helper()
	value := func(of *regexp.Regexp) (v float64) {
		if m := of.FindStringSubmatch(text); m != nil {
			var err error
			v, err = strconv.ParseFloat(m[1], 64)
			must(t, err)
		}
		return v
	}
	if sigma = value(number); sigma > 0 {
		task.Sigma = new(item.Sigma(sigma))
		return task, sigma, true
	}
	if std := value(width); std > 0 {
		task.Params = maps.Clone(task.Params)
		task.Params["std"] = std
		return task, 0, true
	}
	m := estimate.FindStringSubmatch(text)
	if m == nil {
		return task, 0, false
	}
	task.Sigma = new(item.SigmaAuto)
	return task, map[string]float64{"smaller": 1e-9, "larger": 1}[m[1]], true
}

// grain is a scan with film grain: coarse noise of the brightness.
func grain(t *testing.T, name string, side int) (picture.Picture, *raster.Image) {
	t.Helper()
	const level = 0.08
	truth, err := raster.Scale(example(t, name), side, side)
	must(t, err)
	r := rand.New(rand.NewPCG(3, 3))
	field := raster.New(1, side, side)
	for i := range field.Pix {
		field.Pix[i] = float32(r.NormFloat64())
	}
	field = blurred(field, 1.2)
	sum := 0.0
	for _, v := range field.Pix {
		sum += float64(v) * float64(v)
	}
	scale := float32(level / math.Sqrt(sum/float64(len(field.Pix))))
	y := truth.Clone()
	for i := range y.Pix {
		y.Pix[i] += scale * field.Pix[i%len(field.Pix)]
	}
	file, err := raster.EncodePNG(y)
	must(t, err)
	return picture.Picture{Name: fmt.Sprintf("%s with grain at %d", name, side), Measurement: picture.File{Path: "grain.png", Data: file}, Task: item.Task{
		Name: operator.Denoise, Sigma: new(item.SigmaAuto), Method: "ddiff", Preset: "natural",
	}}, truth
}

// TestAdvice follows the advice of each warning: the check does not change what was advised, and the result is not below the one with the advice.
func TestAdvice(t *testing.T) {
	if testing.Short() {
		t.Skip("restores twenty pictures: make test-all")
	}
	of := func(d degraded) func() (picture.Picture, *raster.Image) {
		return func() (picture.Picture, *raster.Image) {
			p, truth, _ := d.picture(t)
			return p, truth
		}
	}
	sessions := map[bool]*picture.Session{}
	for _, unchecked := range []bool{true, false} {
		cfg := config(t)
		cfg.Unchecked = unchecked
		s, err := picture.Open(t.Context(), cfg)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		sessions[unchecked] = s
	}
	restored := func(p picture.Picture, unchecked bool) (found picture.Result) {
		for _, res := range sessions[unchecked].Restore(t.Context(), p) {
			must(t, res.Err)
			found = res
		}
		return found
	}
	for _, c := range []struct {
		make      func() (picture.Picture, *raster.Image)
		unchecked bool
		advice    int // the number of them
	}{
		{of(degraded{image: "coffee", task: operator.Denoise, noise: 0.02, sigma: 0.2}), true, 3},
		{of(degraded{image: "chelsea", task: operator.Denoise, noise: 0.02, sigma: 0.002}), true, 2},
		{of(degraded{image: "coffee", task: operator.Denoise, noise: 0.02, jpeg: 95}), true, 1},
		{of(degraded{image: "rocket", task: operator.GaussianDeblur, width: 6, noise: 0.08, jpeg: 75, statedStd: 12}), false, 0}, // half of its level leads to a pattern
		{of(degraded{image: "rocket", task: operator.GaussianDeblur, width: 6, noise: 0.02, jpeg: 50, statedStd: 12}), false, 0}, // its level is below the errors of the file
		{of(degraded{image: "chelsea", task: operator.GaussianDeblur, width: 6, noise: 0.02, jpeg: 50, statedStd: 3, sigma: 0.002}), false, 1},
		{of(degraded{image: "coffee", task: operator.GaussianDeblur, width: 6, noise: 0.02, statedStd: 12, sigma: 0.02}), true, 1},
		{func() (picture.Picture, *raster.Image) { return grain(t, "rocket", 64) }, false, 0},
		{func() (picture.Picture, *raster.Image) { return grain(t, "rocket", 128) }, false, 1},
	} {
		p, truth := c.make()
		first := restored(p, c.unchecked)
		for _, w := range first.Warnings {
			task, sigma, ok := follow(t, p.Task, w.Text)
			if !ok || w.Code == photograph.WarnChanged {
				continue
			}
			c.advice--
			advised := p
			advised.Task = task
			second := restored(advised, false)
			gain := psnr(t, truth, second.Image) - psnr(t, truth, first.Image)
			t.Logf("%s: %s: %.2f dB with sigma %.3g", p.Name, w.Text, gain, second.Item.Sigma)
			if undone := sigma > 0 && (second.Item.Sigma-first.Item.Sigma)*(sigma-first.Item.Sigma) <= 0; undone || gain < -0.3 {
				t.Errorf("%s: %s: %.2f dB with sigma %.3g, %+v", p.Name, w.Text, gain, second.Item.Sigma, second.Warnings)
			}
		}
		if c.advice != 0 {
			t.Errorf("%s: %d advices are missing or new: %+v", p.Name, c.advice, first.Warnings)
		}
	}
}
