package picture_test

import (
	"bytes"
	"errors"
	"fmt"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/picture"
)

// degraded is a picture of the grid: what was done to it, and what is stated about it.
type degraded struct {
	image     string
	task      string
	width     float64 // of the blur in 1/256 of the side; 0: none
	noise     float64
	jpeg      int     // quality; 0: none
	dead      float64 // share of dead and hot pixels
	clipped   bool    // half of the light is beyond white
	gamma     bool    // the blur is of light, not of the values of the file
	kernel    string  // what is stated about a blur by a kernel: right, turned, shifted or long; empty: no such blur
	statedStd float64
	sigma     float64 // stated; 0: auto
}

func (d degraded) String() string {
	return fmt.Sprintf("%s %s width=%g noise=%g jpeg=%d dead=%g clipped=%v gamma=%v stated: std=%g sigma=%g kernel=%s", d.image, d.task, d.width, d.noise, d.jpeg, d.dead, d.clipped, d.gamma,
		d.statedStd, d.sigma, d.kernel)
}

func example(t *testing.T, name string) *raster.Image {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", "images", name+".png"))
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	img, err = raster.Fit(img, "resize", 64, 1)
	must(t, err)
	return raster.Crop(img, 64, 64)
}

// mirrored is the index of a row or column beyond the border, without repeating the edge, as of the operators.
func mirrored(i, n int) int {
	if i < 0 {
		i = -i
	}
	if i >= n {
		i = 2*n - 2 - i
	}
	return i
}

func blurred(x *raster.Image, std float64) *raster.Image {
	if std == 0 {
		return x
	}
	reach := int(math.Ceil(3 * std))
	for _, horizontal := range []bool{true, false} {
		out := raster.New(x.Channels, x.Height, x.Width)
		for c := range x.Channels {
			for i := range x.Height {
				for k := range x.Width {
					sum, weight := 0.0, 0.0
					for s := -reach; s <= reach; s++ {
						row, col := i, mirrored(k+s, x.Width)
						if !horizontal {
							row, col = mirrored(i+s, x.Height), k
						}
						g := math.Exp(-float64(s*s) / (2 * std * std))
						weight += g
						sum += g * float64(x.Plane(c)[row*x.Width+col])
					}
					out.Plane(c)[i*x.Width+k] = float32(sum / weight)
				}
			}
		}
		x = out
	}
	return x
}

// degrade makes the file of a picture, and returns it with its pixels.
func (d degraded) degrade(t *testing.T, truth *raster.Image) (file []byte, seen *raster.Image) {
	t.Helper()
	const gamma = 2.2
	y := truth
	if d.gamma {
		y = mapped(y, func(v float64) float64 { return 2*math.Pow((v+1)/2, gamma) - 1 })
	}
	y = blurred(y, d.width*64/256)
	if d.kernel != "" {
		y = shaken(y, stroke(1))
	}
	if d.gamma {
		y = mapped(y, func(v float64) float64 { return 2*math.Pow(max(0, v+1)/2, 1/gamma) - 1 })
	}
	out := raster.New(y.Channels, y.Height, y.Width)
	r := rand.New(rand.NewPCG(1, uint64(len(d.image))))
	for i, v := range y.Pix {
		out.Pix[i] = min(1, max(-1, v+float32(d.noise*r.NormFloat64())))
	}
	n := y.Height * y.Width
	for i := range n {
		if r.Float64() < d.dead {
			v := float32(2*r.IntN(2) - 1)
			for c := range y.Channels {
				out.Pix[c*n+i] = v
			}
		}
	}
	file, err := raster.EncodePNG(out)
	must(t, err)
	if d.jpeg > 0 {
		img, err := png.Decode(bytes.NewReader(file))
		must(t, err)
		var b bytes.Buffer
		must(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: d.jpeg}))
		file = b.Bytes()
	}
	seen, err = raster.Decode(file)
	must(t, err)
	return file, seen
}

// brighter is the scene of a picture that is exposed for too long; a clipped file ends at white.
func brighter(x *raster.Image) *raster.Image {
	return mapped(x, func(v float64) float64 { return 1.5*(v+1) - 1 })
}

func mapped(x *raster.Image, change func(v float64) float64) *raster.Image {
	x = x.Clone()
	for i, v := range x.Pix {
		x.Pix[i] = float32(change(float64(v)))
	}
	return x
}

// stroke is a kernel of 11×11 pixels: a bent path, or one that is longer.
func stroke(length int) []float32 {
	k := make([]float32, 11*11)
	points := [][2]int{{0, 0}, {0, 1}, {0, -1}, {1, 2}, {-1, -1}, {-2, -1}}
	for _, p := range points {
		for i := range length {
			k[(5+p[0]*length+i*(length-1)/2)*11+5+p[1]*length] += 1 / float32(len(points)*length)
		}
	}
	return k
}

// stated is the kernel that is given.
func (d degraded) stated() []float32 {
	k := stroke(1)
	switch d.kernel {
	case "turned":
		slices.Reverse(k)
	case "shifted":
		k = append(k[24:len(k):len(k)], k[:24]...) // by two pixels along both axes
	case "long":
		k = stroke(2)
	}
	return k
}

func shaken(x *raster.Image, k []float32) *raster.Image {
	out := raster.New(x.Channels, x.Height, x.Width)
	for c := range x.Channels {
		for i := range x.Height {
			for l := range x.Width {
				for a, w := range k {
					out.Plane(c)[i*x.Width+l] += w * x.Plane(c)[mirrored(i+a/11-5, x.Height)*x.Width+mirrored(l+a%11-5, x.Width)]
				}
			}
		}
	}
	return out
}

// grid has wrong and right statements about pictures with noise, blur, compression and dead pixels.
func grid() (all []degraded) {
	for _, image := range []string{"astronaut", "chelsea", "coffee", "rocket"} {
		for _, noise := range []float64{0.02, 0.08} {
			for _, more := range []degraded{{}, {jpeg: 50}, {jpeg: 75}, {jpeg: 95}, {dead: 0.001}, {dead: 0.01}, {dead: 0.05}, {clipped: true}, {gamma: true},
				{kernel: "right"}, {kernel: "turned"}, {kernel: "shifted"}, {kernel: "long"}} {
				for _, scale := range []float64{0.1, 1, 10, 0} {
					d := more
					d.image, d.noise, d.sigma, d.task = image, noise, scale*noise, operator.Denoise
					if d.kernel != "" {
						d.task = operator.MotionDeblur
						all = append(all, d)
						continue
					}
					all = append(all, d)
					d.task, d.width = operator.GaussianDeblur, 6
					for _, w := range []float64{0.5, 1, 2} {
						d.statedStd = w * d.width
						all = append(all, d)
					}
				}
			}
		}
	}
	return all
}

// sound reports whether what is stated is true.
func (d degraded) sound() bool {
	return d.jpeg == 0 && d.dead == 0 && !d.clipped && !d.gamma && (d.kernel == "" || d.kernel == "right") && d.statedStd == d.width && (d.sigma == 0 || d.sigma == d.noise)
}

// picture returns the picture of the grid, with its truth and its pixels.
func (d degraded) picture(t *testing.T) (p picture.Picture, truth, seen *raster.Image) {
	t.Helper()
	truth = example(t, d.image)
	if d.clipped {
		truth = brighter(truth)
	}
	file, seen := d.degrade(t, truth)
	truth = mapped(truth, func(v float64) float64 { return min(1, max(-1, v)) })
	p = picture.Picture{Name: d.String(), Measurement: picture.File{Path: d.String() + ".png", Data: file}, Task: item.Task{
		Name: d.task, Sigma: new(item.Sigma(d.sigma)), Method: "ddiff", Preset: "natural",
	}}
	if d.sigma == 0 {
		p.Task.Sigma = new(item.SigmaAuto)
	}
	if d.statedStd > 0 {
		p.Task.Params = map[string]float64{"std": d.statedStd}
	}
	if d.kernel != "" {
		data, err := raster.EncodeNPY([]int{11, 11}, d.stated())
		must(t, err)
		p.Kernel = picture.File{Path: d.kernel + ".npy", Data: data}
	}
	return p, truth, seen
}

// part is a picture without two rows and columns, from a place on.
func part(x *raster.Image, from int) *raster.Image {
	out := raster.New(x.Channels, x.Height-2, x.Width-2)
	for c := range x.Channels {
		for i := range out.Height {
			copy(out.Plane(c)[i*out.Width:][:out.Width], x.Plane(c)[(i+from)*x.Width+from:])
		}
	}
	return out
}

func psnr(t *testing.T, truth, x *raster.Image) float64 {
	t.Helper()
	v, err := metric.PSNR(truth, x)
	must(t, err)
	return v
}

// TestNeverWorse restores a sample of the grid of wrong statements, or the number of pictures in DDIFF_GRID: results far below their inputs are stopped or
// mended, and none below its input comes without a word.
func TestNeverWorse(t *testing.T) {
	if testing.Short() {
		t.Skip("restores forty pictures: make test-all")
	}
	n, all := 40, grid()
	if text := os.Getenv("DDIFF_GRID"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	s, err := picture.Open(t.Context(), config(t))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	var some []degraded
	var pictures []picture.Picture
	var truths, seens []*raster.Image
	for _, i := range rand.New(rand.NewPCG(7, 7)).Perm(len(all))[:min(n, len(all))] {
		p, truth, seen := all[i].picture(t)
		some, pictures, truths, seens = append(some, all[i]), append(pictures, p), append(truths, truth), append(seens, seen)
	}
	var below, far, silent, stopped, refused, sound, stoppedSound, changed, turned int
	worst := math.Inf(1)
	for i, res := range s.Restore(t.Context(), pictures...) {
		d := some[i]
		if d.sound() {
			sound++
		}
		if errors.Is(res.Err, picture.ErrImplausible) {
			t.Logf("stopped: %v: %v", d, res.Err)
			if stopped++; d.sound() {
				stoppedSound++
			}
			continue
		}
		if errors.Is(res.Err, photograph.ErrFewPatches) && d.sigma == 0 && d.clipped { // too few pixels are not clipped
			t.Logf("refused: %v: %v", d, res.Err)
			refused++
			continue
		}
		must(t, res.Err)
		if slices.ContainsFunc(res.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnChanged }) {
			changed++
		}
		truth, x, seen := truths[i], res.Image, seens[i]
		if d.kernel == "shifted" { // and so is the restored picture
			truth, x, seen = part(truth, 2), part(x, 0), part(seen, 2)
		}
		gain := psnr(t, truth, x) - psnr(t, truth, seen)
		worst = min(worst, gain)
		if gain >= -0.5 {
			continue
		}
		t.Logf("%.2f dB: %v; restored with %.3g: %s", gain, d, res.Item.Sigma, item.WarningCodes(res.Warnings))
		if len(res.Warnings) == 0 {
			silent++
		}
		if d.kernel == "turned" && gain >= -2 { // which a picture with much noise does not tell
			turned++
			continue
		}
		if below++; gain < -2 {
			far++
		}
	}
	t.Logf("pictures=%d below=%d far_below=%d silent=%d worst_db=%.2f changed=%d stopped=%d refused=%d sound=%d sound_stopped=%d turned_below=%d",
		len(some), below, far, silent, worst, changed, stopped, refused, sound, stoppedSound, turned)
	if below*50 > len(some)+49 || far > 0 || silent > 0 || stoppedSound*50 > sound {
		t.Error("results are far below their inputs, or silent, or sound pictures are stopped")
	}
}

// TestLabyrinth: a blurred JPEG with a noise level far too small becomes a pattern without the check, and is restored with it, in all runs with one noise level.
func TestLabyrinth(t *testing.T) {
	d := degraded{image: "rocket", task: operator.GaussianDeblur, width: 6, noise: 0.02, jpeg: 90, statedStd: 6, sigma: 0.002}
	p, truth, seen := d.picture(t)
	for _, unchecked := range []bool{true, false} {
		cfg := config(t)
		cfg.Unchecked = unchecked
		s, err := picture.Open(t.Context(), cfg)
		must(t, err)
		again, sigma := p, 0.
		again.Task.Run = 1
		for i, res := range s.Restore(t.Context(), p, again) {
			must(t, res.Err)
			if i > 0 && res.Item.Sigma != sigma {
				t.Errorf("unchecked=%v: the runs have sigma %g and %g", unchecked, sigma, res.Item.Sigma)
			}
			if sigma = res.Item.Sigma; unchecked != slices.ContainsFunc(res.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnDoubt }) {
				t.Errorf("unchecked=%v: %+v", unchecked, res.Warnings)
			}
			gain := psnr(t, truth, res.Image) - psnr(t, truth, seen)
			changed := slices.ContainsFunc(res.Warnings, func(w item.Warning) bool {
				return w.Code == photograph.WarnChanged && strings.HasPrefix(w.Text, "sigma 0.002 does not explain the picture, sigma 0.0119 to 0.0475 leads to a pattern that is not in the picture; restored with sigma 0.0951")
			})
			t.Logf("unchecked=%v: %.2f dB, sigma %.3g", unchecked, gain, res.Item.Sigma)
			if unchecked && (gain > -5 || changed) || !unchecked && (gain < 0 || !changed || res.Item.Sigma < 0.004) {
				t.Errorf("unchecked=%v: %.2f dB, %+v", unchecked, gain, res.Warnings)
			}
		}
		must(t, s.Close())
	}
}

// TestWrongKernel: a kernel that is turned or too long is stopped with its remedy, and the right one is not, also with a noise level that is far too large.
func TestWrongKernel(t *testing.T) {
	s, err := picture.Open(t.Context(), config(t))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for _, sigma := range []float64{0.02, 0.2} {
		for kernel, want := range map[string]string{"right": "", "turned": "--kernel-form psf", "long": "give a smaller kernel"} {
			p, _, _ := degraded{image: "coffee", task: operator.MotionDeblur, noise: 0.02, sigma: sigma, kernel: kernel}.picture(t)
			for _, res := range s.Restore(t.Context(), p) {
				if want == "" {
					must(t, res.Err)
					if codes := item.WarningCodes(res.Warnings); strings.Contains(codes, photograph.WarnKernel) {
						t.Errorf("the right kernel: %v", res.Warnings)
					}
				} else if !errors.Is(res.Err, picture.ErrImplausible) || !strings.Contains(res.Err.Error(), want) {
					t.Errorf("%s kernel, sigma %g: %v", kernel, sigma, res.Err)
				}
			}
		}
	}
}

// TestNoSuchJPEG: a picture that was never compressed as strongly as stated is stopped, and one that was is not.
func TestNoSuchJPEG(t *testing.T) {
	d := degraded{image: "coffee", task: operator.JPEG, jpeg: 50, sigma: 0.05}
	p, _, seen := d.picture(t)
	file, err := raster.EncodePNG(seen)
	must(t, err)
	p.Measurement.Data = file
	s, err := picture.Open(t.Context(), config(t))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	wrong := p
	p.Task.Params, wrong.Task.Params = map[string]float64{"quality": 50}, map[string]float64{"quality": 10}
	for i, res := range s.Restore(t.Context(), p, wrong) {
		t.Logf("%v", res.Err)
		if i == 0 && res.Err != nil || i == 1 && (!errors.Is(res.Err, picture.ErrImplausible) || !strings.Contains(res.Err.Error(), "JPEG of quality 10 leaves no such picture")) {
			t.Errorf("picture %d: %v", i, res.Err)
		}
	}
}

// TestRestoredAgain: a level far below the noise of a blurred picture is raised to it at once, as one between them explains the picture, with noise in the result; one far above the noise is
// lowered again where half of the picture is clipped; one with which noise is magnified in the finest details is raised further.
func TestRestoredAgain(t *testing.T) {
	s, err := picture.Open(t.Context(), config(t))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for _, c := range []struct {
		d               degraded
		least, low, top float64 // gain in dB, and sigma
	}{
		{degraded{image: "chelsea", task: operator.MotionDeblur, noise: 0.08, sigma: 0.008, kernel: "right"}, 0, 0.07, 0.2},
		{degraded{image: "astronaut", task: operator.Denoise, noise: 0.02, clipped: true, sigma: 0.2}, -0.5, 0.01, 0.03},
		{degraded{image: "chelsea", task: operator.GaussianDeblur, width: 6, noise: 0.08, jpeg: 75, statedStd: 12, sigma: 0.008}, 1, 0.08, 0.1},
	} {
		p, truth, seen := c.d.picture(t)
		for _, res := range s.Restore(t.Context(), p) {
			must(t, res.Err)
			gain := psnr(t, truth, res.Image) - psnr(t, truth, seen)
			t.Logf("%v: %.2f dB with %.3g", c.d, gain, res.Item.Sigma)
			if gain < c.least || res.Item.Sigma < c.low || res.Item.Sigma > c.top || !slices.ContainsFunc(res.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnChanged }) {
				t.Errorf("%v: %.2f dB with %.3g, %+v", c.d, gain, res.Item.Sigma, res.Warnings)
			}
		}
	}
}

// TestSigmaBelowCompression: a sigma below the errors of a compressed file is said for blurs, which magnify them, and one above them is not.
func TestSigmaBelowCompression(t *testing.T) {
	s, err := picture.Open(t.Context(), config(t))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for sigma, want := range map[float64]bool{0.002: true, 0.03: false} {
		p, _, _ := degraded{image: "astronaut", task: operator.GaussianDeblur, width: 6, noise: 0.02, jpeg: 75, statedStd: 3, sigma: sigma}.picture(t)
		for _, res := range s.Restore(t.Context(), p) {
			must(t, res.Err)
			said := slices.ContainsFunc(res.Warnings, func(w item.Warning) bool {
				return w.Code == photograph.WarnSigma && strings.Contains(w.Text, "magnifies")
			})
			if said != want {
				t.Errorf("sigma %g: %v", sigma, res.Warnings)
			}
		}
	}
}
