package main_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/onnx/onnxtest"
	photos "ddiff/internal/restore/photograph"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// priorOf writes a prior for images of some channels, and returns its path. The network is the posterior mean of Gaussian images whose local means, of
// 5×5 pixels, have the variance 0.3, and whose details have 0.01.
func priorOf(t *testing.T, channels int) string {
	t.Helper()
	const linear, side, coarse, fine = "linear:1e-4:0.02:1000", 5, 0.3, 0.01
	schedule, err := prior.ParseSchedule(linear)
	must(t, err)
	var means, details, signal, noise []float32
	for _, a := range schedule.AlphaBar {
		s, v := math.Sqrt(a), 1-a
		means = append(means, float32(s*coarse/(a*coarse+v/(side*side))))
		details = append(details, float32(s*fine/(a*fine+v)))
		signal, noise = append(signal, float32(s)), append(noise, float32(math.Sqrt(v)))
	}
	g := onnx.NewGraph(onnx.DefaultOpset)
	x, at := g.Input("x", onnx.Float, -1, channels, -1, -1), g.Input("t", onnx.Int64, -1)
	of := func(table []float32) onnx.Value {
		return g.Reshape(g.Gather(g.Const(table, len(table)), at), -1, 1, 1, 1)
	}
	box := make([]float32, channels*side*side)
	for i := range box {
		box[i] = 1. / (side * side)
	}
	low := g.Apply("Conv", onnx.Float, x.Dims, map[string]any{"kernel_shape": []int{side, side}, "pads": []int{2, 2, 2, 2}, "group": channels}, x, g.Const(box, channels, 1, side, side))
	clean := g.Add(g.Mul(low, of(means)), g.Mul(g.Minus(x, low), of(details)))
	g.Output("eps", g.Div(g.Minus(x, g.Mul(clean, of(signal))), of(noise)))
	data, err := g.Marshal("smooth")
	must(t, err)
	data = onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "smooth", "ddiff.prediction": "epsilon", "ddiff.schedule": linear, "ddiff.range": "-1..1",
		"ddiff.channels": strconv.Itoa(channels), "ddiff.multiple_of": "4", "ddiff.learned_variance": "false", "ddiff.license": "CC0-1.0",
	})
	path := filepath.Join(t.TempDir(), "smooth.onnx")
	write(t, path, data)
	return path
}

// deepPicture is a smooth picture of 32×32 pixels in 16 bits, whose values have steps far below those of 8 bits.
func deepPicture() *raster.Image {
	img := raster.New(1, 32, 32)
	for i := range img.Pix {
		x, y := float64(i%32), float64(i/32)
		img.Pix[i] = float32(float64(raster.To16(float32(0.1+0.02*math.Sin(x/5)*math.Cos(y/7))))/32767.5 - 1)
	}
	return img
}

// writePicture writes a grey picture, and returns its path.
func writePicture(t *testing.T, img *raster.Image, name string, of raster.Picture) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	format, _ := photos.FormatOf(name)
	data, err := photos.EncodeFile(img, &of, nil, photos.FileOptions{Format: format})
	must(t, err)
	write(t, path, data)
	return path
}

// greyFile returns the only channel of a PNG or TIFF file of 16 bits.
func greyFile(t *testing.T, path string) *raster.Image {
	t.Helper()
	data := read(t, path)
	p, err := raster.DecodePicture(data)
	must(t, err)
	if stored, _ := raster.Samples(data); !p.Grey || p.Bits != 16 || raster.FormatOf(data) == "png" && !stored {
		t.Fatalf("%s: grey %v with %d bits, want a grey file of 16", path, p.Grey, p.Bits)
	}
	return &raster.Image{Channels: 1, Height: p.Image.Height, Width: p.Image.Width, Pix: p.Image.Plane(0)}
}

// TestGreyCampaign runs each task and each method on pixels with a prior of one channel: metrics are those of one channel, computed with more than 8 bits, and so are
// the pictures.
func TestGreyCampaign(t *testing.T) {
	skipLong(t)
	t.Parallel()
	truth := deepPicture()
	card := prior.Card{Channels: 1}
	var tasks, methods []string
	for _, d := range operator.Builtin() {
		if !d.Required && method.Builtin().Serves("ddiff", d, &card) == nil {
			tasks = append(tasks, d.Name)
		}
	}
	for _, i := range method.Builtin().Infos() {
		if !i.Latent {
			methods = append(methods, i.Name)
		}
	}
	dir := t.TempDir()
	out, spec := filepath.Join(dir, "out"), filepath.Join(dir, "grey.yaml")
	write(t, spec, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\nprior: %s\nsigma: 0.001\nsteps: 6\nunclipped: true\nmethods: [%s]\ntasks:\n- {name: %s, methods: [%s]}\n- {name: %s, methods: [ddiff]}\n",
		filepath.Dir(writePicture(t, truth, "a.png", raster.Picture{Grey: true, Bits: 16})), priorOf(t, 1), strings.Join(methods, ", "), tasks[0], strings.Join(methods, ", "),
		strings.Join(tasks[1:], ", methods: [ddiff]}\n- {name: ")))
	e := ddiff(t, "run", spec, "--out", out, "--threads", "1")
	wantCode(t, e, 0)
	for id, r := range wantItems(t, out, len(methods)+len(tasks)-1) {
		if got := greyFile(t, file(out, id, "truth.png")); !slices.Equal(got.Pix, truth.Pix) {
			t.Errorf("%s: the truth lost precision", r.Item.Task)
		}
		restored := greyFile(t, file(out, id, "restored.png"))
		for _, m := range metric.Builtin().Comparing() {
			want, err := m.Compare(truth, restored)
			must(t, err)
			if got := r.Metrics.Of(m.Name); !(math.Abs(got-want) <= 1e-2) { // 16 bits round
				t.Errorf("%s, %s: %s is %v, that of the pictures %v", r.Item.Task, r.Item.Method, m.Name, got, want)
			}
		}
	}
	wantCode(t, ddiff(t, "verify", out), 0)
	lpips := filepath.Join("..", "..", "internal", "restore", "metric", "testdata", "lpips_alex.onnx")
	e = ddiff(t, "score", out, "--metric", "haarpsi,psnr@reference_range,lpips:"+lpips)
	wantCode(t, e, 0)
	for _, name := range []string{"haarpsi@1:png", "psnr@reference_range", "lpips_alex@1"} {
		wantLine(t, e, "metric="+name, fmt.Sprintf("scored=%d present=0 skipped=0 wrong=0", len(methods)+len(tasks)-1))
	}

	for _, name := range []string{operator.Colorize, operator.Demosaic} {
		wantRefusal(t, ddiff(t, "run", spec, "--task", name, "--out", out), 2, "task: "+name+" makes colours, and the prior smooth has channels: 1; name the other tasks, or give a prior with channels: 3")
	}
}

// TestRestoreThroughGreyPrior restores grey pictures through a prior of one channel, with all of their bits and in their format, and arrays; pictures in colour are refused.
func TestRestoreThroughGreyPrior(t *testing.T) {
	skipLong(t)
	t.Parallel()
	network, truth, dir := priorOf(t, 1), deepPicture(), t.TempDir()
	through := func(in, out string, args ...string) ended {
		return ddiff(t, append([]string{"restore", in, "--out", out, "--prior", network, "--sigma", "0.001", "--threads", "1", "--task"}, args...)...)
	}
	for _, name := range []string{"a.png", "a.tif"} {
		out := filepath.Join(dir, "out"+filepath.Ext(name))
		wantCode(t, through(writePicture(t, truth, name, raster.Picture{Grey: true, Bits: 16}), out, "denoise"), 0)
		if got := psnr(t, truth, greyFile(t, out)); got < 62 { // 8 bits have 59
			t.Errorf("%s: the PSNR is %.1f dB", name, got)
		}
		wantCode(t, ddiff(t, "verify", out), 0)
		wantLine(t, ddiff(t, "replay", out, "--prior", network, "--threads", "1"), "replay=bit-equal")
	}
	out := filepath.Join(dir, "jpeg.png")
	wantCode(t, through(writePicture(t, truth, "a.jpg", raster.Picture{Grey: true, Bits: 8}), out, "jpeg"), 0)
	if stored, bits := raster.Samples(read(t, out)); !stored || bits != 8 {
		t.Errorf("of a grey JPEG file: grey %v with %d bits", stored, bits)
	}
	array := filepath.Join(dir, "y.npy")
	data, err := raster.EncodeNPY([]int{1, truth.Height, truth.Width}, truth.Pix)
	must(t, err)
	write(t, array, data)
	wantCode(t, through(array, filepath.Join(dir, "array.png"), "denoise", "--measurement-range", "-1,1"), 0)

	colour := writePicture(t, &raster.Image{Channels: 3, Height: 8, Width: 8, Pix: truth.Pix[:3*64]}, "b.png", raster.Picture{Bits: 8})
	wantMessage(t, through(colour, filepath.Join(dir, "colour.png"), "denoise"), "b.png: it is a colour picture, the prior is for grey ones; convert it to grey, or give a prior with channels: 3")
	wantRefusal(t, through(colour, filepath.Join(dir, "colour.png"), "demosaic"), 2, "task: demosaic makes colours")
	// A run makes grey images of those in colour.
	run := filepath.Join(dir, "run")
	wantCode(t, ddiff(t, "run", photographs(t, "coffee"), "--size", "32", "--task", "denoise", "--steps", "3", "--prior", network, "--out", run, "--threads", "1"), 0)
	for id := range wantItems(t, run, 1) {
		if stored, bits := raster.Samples(read(t, file(run, id, "truth.png"))); !stored || bits != 8 {
			t.Errorf("the truth of a photograph: grey %v with %d bits", stored, bits)
		}
	}
	wantCode(t, ddiff(t, "prior", "check", network, "--images", photographs(t, "coffee"), "--size", "32", "--threads", "1"), 0)
}

// TestScoreOfGreyMeasurement: beside a truth in colour, the restoration of a grey measurement is stored grey, and scored all the same.
func TestScoreOfGreyMeasurement(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "truth.png"), grey(32))
	measured := writePicture(t, deepPicture(), "y.png", raster.Picture{Grey: true, Bits: 8})
	list, out := filepath.Join(dir, "list.csv"), filepath.Join(dir, "out")
	write(t, list, fmt.Appendf(nil, "image,measurement\n%s,%s\n", filepath.Join(dir, "truth.png"), measured))
	wantCode(t, ddiff(t, "run", list, "--size", "32", "--task", "denoise", "--steps", "2", "--out", out, "--threads", "1"), 0)
	wantLine(t, ddiff(t, "score", out, "--metric", "haarpsi"), "scored=1 present=0 skipped=0 wrong=0")
}

// TestFlowerDraw: without a decomposition there is no draw, which no retry changes.
func TestFlowerDraw(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "run", photographs(t, "coffee"), "--size", "32", "--task", "hdr", "--method", "flower", "--solver", "gamma=1", "--steps", "2", "--out", filepath.Join(t.TempDir(), "out"), "--threads", "1")
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: coffee (hdr): ", "set gamma: 0")
}
