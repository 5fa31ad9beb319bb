package picture_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/picture"
)

// measured is a picture of a task with noise, in which a share of the pixels is dead or hot.
type measured struct {
	image  string // "": two photographs
	task   string
	params map[string]float64
	side   int // of the image
	sigma  float64
	dead   float64
}

// width is that of the measurement.
func (m measured) width() int { return m.side / max(1, int(m.params["factor"])) }

// picture returns the picture with its truth, and the places of the dead and hot pixels.
func (m measured) picture(t *testing.T, cfg picture.Config) (p picture.Picture, truth *raster.Image, lost []bool) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", m.image))
	must(t, err)
	truth, err = raster.Decode(data)
	must(t, err)
	truth, err = raster.Fit(truth, "center_crop", m.side, 1)
	must(t, err)
	op, err := operator.Builtin().New(m.task, m.params, operator.Shape{Channels: 3, Height: m.side, Width: m.side})
	must(t, err)
	f, err := operator.NewForward(cfg.Runtime, op)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	draw := op.Draw(noise.NewKey(sha256.Sum256([]byte("outliers"))))
	encoded, err := op.Encode(draw)
	must(t, err)
	y, err := f.Measure(t.Context(), truth.Pix, encoded, operator.Noise{Sigma: m.sigma}, noise.NewKey(sha256.Sum256([]byte(m.image))))
	must(t, err)
	c, h, w := op.Measurement[0], op.Measurement[1], op.Measurement[2]
	r := rand.New(rand.NewPCG(1, 2))
	lost = make([]bool, h*w)
	for i := range lost {
		if lost[i] = r.Float64() < m.dead; lost[i] {
			v := float32(2*r.IntN(2) - 1)
			for k := range c {
				y[k*h*w+i] = v
			}
		}
	}
	seen := raster.New(3, h, w)
	for i := range seen.Pix {
		seen.Pix[i] = y[i%len(y)]
	}
	file, err := raster.EncodePNG(seen)
	must(t, err)
	p = picture.Picture{Name: m.image, Measurement: picture.File{Path: m.image, Data: file}, Task: item.Task{
		Name: m.task, Params: m.params, Sigma: new(item.Sigma(m.sigma)), Method: "ddiff", Preset: "natural",
	}}
	if draw != nil {
		kernel, err := raster.EncodeNPY(draw.Dims, draw.Data)
		must(t, err)
		p.Kernel = picture.File{Path: "kernel.npy", Data: kernel}
	}
	return p, truth, lost
}

// losing returns the picture with a mask that drops some pixels.
func losing(t *testing.T, p picture.Picture, lost []bool, side int) picture.Picture {
	t.Helper()
	mask := make([]float32, len(lost))
	for i := range lost {
		if !lost[i] {
			mask[i] = 1
		}
	}
	data, err := raster.EncodeNPY([]int{len(lost) / side, side}, mask)
	must(t, err)
	p.Mask = picture.File{Path: "mask.npy", Data: data}
	return p
}

// TestDeadPixels: with a hundredth of dead and hot pixels a picture is restored nearly as well as without, whether they are found or a mask drops them. In pictures without such
// pixels none is found.
func TestDeadPixels(t *testing.T) {
	cfg := config(t)
	s, err := picture.Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for _, m := range []measured{
		{task: operator.GaussianDeblur, params: map[string]float64{"std": 6}, side: 64, sigma: 0.02},
		{task: operator.MotionDeblur, side: 64, sigma: 0.02},
		{task: operator.SuperResolution, params: map[string]float64{"factor": 2}, side: 96, sigma: 0.02},
		{task: operator.SuperResolution, params: map[string]float64{"factor": 4}, side: 128, sigma: 0.02},
		{task: operator.Denoise, side: 64, sigma: 0.05},
		{image: "images/astronaut.png", task: operator.Denoise, side: 64, sigma: 0.05}, // black and white
		{task: operator.Demosaic, side: 64, sigma: 0.05},
		{image: "images/astronaut.png", task: operator.Demosaic, side: 64, sigma: 0.05},
	} {
		var without, found, masked float64
		images := []string{"images/chelsea.png", "unseen/windmill.png"}
		if m.image != "" {
			images = []string{m.image}
		}
		for _, m.image = range images {
			var pictures []picture.Picture
			m.dead = 0
			p, truth, _ := m.picture(t, cfg)
			m.dead = 0.01
			dead, _, lost := m.picture(t, cfg)
			pictures = append(pictures, p, dead, losing(t, dead, lost, m.width()))
			for i, res := range s.Restore(t.Context(), pictures...) {
				must(t, res.Err)
				warned := slices.ContainsFunc(res.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnPixels })
				if i < 2 && warned != (i == 1) {
					t.Errorf("%v: %+v", m, res.Warnings)
				}
				*[]*float64{&without, &found, &masked}[i] += psnr(t, truth, res.Image) / float64(len(images))
			}
		}
		t.Logf("task=%s params=%v images=%v without_db=%.2f found_db=%.2f masked_db=%.2f", m.task, m.params, images, without, found, masked)
		if min(found, masked) < without-0.5 {
			t.Errorf("%s %v: %.2f dB with dead pixels, %.2f with their mask, %.2f without", m.task, m.params, found, masked, without)
		}
	}
}
