package job

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/regular"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/tiff"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestReadGreyPicture: a grey picture is the measurement of a task of one channel, whose restored picture has colours; a mosaic keeps its
// filter where it is mirrored. A picture with colours is refused.
func TestReadGreyPicture(t *testing.T) {
	t.Parallel()
	for _, name := range []string{operator.Colorize, operator.Demosaic} {
		op, err := operator.Builtin().New(name, nil, operator.Shape{Channels: 3, Height: 16, Width: 24})
		must(t, err)
		picture := raster.New(3, 11, 18)
		for c := range 3 {
			for i := range picture.Plane(c) {
				picture.Plane(c)[i] = float32(i%18%2+2*(i/18%2))/2 - 1 // the place in a square of 2×2 pixels
			}
		}
		data, err := raster.EncodePicture(picture, raster.Picture{Grey: true, Bits: 8})
		must(t, err)
		tk := &Job{Op: op, Item: item.Item{Task: name, Measurement: &item.Source{}}}
		must(t, tk.readPicture("y.png", data))
		if got, want := *tk.Item.Picture, (item.Picture{Width: 18, Height: 11, Bits: 8}); got != want {
			t.Errorf("%s: the restored picture is %+v, want %+v", name, got, want)
		}
		for i, v := range tk.Problem.Y {
			if want := picture.Pix[i/24%2*18+i%24%2]; !(math.Abs(float64(v-want)) <= 2./255) { // 8 bits
				t.Fatalf("%s: value %d is %g, want %g", name, i, v, want)
			}
		}
		if img := tk.shown(); img.Channels != 1 || img.Width != 18 || img.Height != 11 {
			t.Errorf("%s: the measurement is shown with %d channels of %d×%d", name, img.Channels, img.Width, img.Height)
		}
		picture.Pix[5] = 0.5
		if data, err = raster.EncodePNG(picture); err != nil {
			t.Fatal(err)
		}
		if err := tk.readPicture("y.png", data); err == nil || !strings.Contains(err.Error(), "read measurement y.png: it is a colour picture, the task needs a grey one") {
			t.Errorf("%s of a colour picture: %v", name, err)
		}
	}
}

// pictureSource is a source of one picture.
type pictureSource []byte

func (f pictureSource) Get(context.Context, string) ([]byte, error) { return f, nil }

// TestRangeOfPicture: a measurement range has the numbers of black and white in the file of a picture.
func TestRangeOfPicture(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.Denoise, nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
	must(t, err)
	img := raster.New(3, 16, 16)
	for i := range img.Pix {
		img.Pix[i] = 2*float32(i%256*16)/65535 - 1 // 12 bits in 16
	}
	data, err := raster.EncodePicture(img, raster.Picture{Bits: 16})
	must(t, err)
	measure := func(r *item.ValueRange) (*Job, error) {
		tk := &Job{Op: op, Item: item.Item{Task: operator.Denoise, Measurement: &item.Source{Path: "https://h/y", SHA256: regular.SHA256(data)}, MeasurementRange: r}}
		return tk, Loader{Engine: engineOf(t), Sources: pictureSource(data)}.Measure(t.Context(), tk)
	}
	tk, err := measure(&item.ValueRange{0, 4080})
	must(t, err)
	for i, y := range tk.Problem.Y {
		if want := 2*float64(i%256)/255 - 1; math.Abs(float64(y)-want) > 1e-5 {
			t.Fatalf("value %d is %v, want %v", i, y, want)
		}
	}
	if got, want := tk.level(tk.Item.Picture), 2./4080; got != want {
		t.Errorf("neighbouring values differ by %v, want %v", got, want)
	}
	if _, err := measure(&item.ValueRange{0, 255}); err == nil || !strings.Contains(err.Error(), "after black and white at the numbers 0 and 255 of the file; correct --measurement-range") {
		t.Errorf("a wrong range: %v", err)
	}
	if tk, err := measure(nil); err != nil || tk.Problem.Y[255] > -0.8 {
		t.Errorf("without a range: %v", err)
	}
}

// TestFloatPicture: floating-point samples keep values beyond white; those of another range are refused.
func TestFloatPicture(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.Denoise, nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
	must(t, err)
	for name, c := range map[string]struct {
		top    float32
		refuse string
	}{"to 1.1": {1.1, ""}, "to 4095": {4095, "of floating-point samples 0 is black and 1 is white; give their values of black and white with --measurement-range LOW,HIGH"}} {
		samples := tiff.Samples{Width: 16, Height: 16, Channels: 3, Bits: 32}
		for i := range 3 * 16 * 16 {
			samples.Data = binary.LittleEndian.AppendUint32(samples.Data, math.Float32bits(c.top*float32(i/3)/255))
		}
		data, err := tiff.Encode(samples, nil)
		must(t, err)
		tk := &Job{Op: op, Item: item.Item{Task: operator.Denoise, Sigma: 0.05}}
		err = tk.readPicture("y.tif", data)
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		must(t, err)
		if got := tk.Problem.Y[255]; math.Abs(float64(got-1.2)) > 1e-5 || tk.Item.Picture.Bits != 32 {
			t.Errorf("%s: white is %v of %d bits", name, got, tk.Item.Picture.Bits)
		}
	}
}

// TestNoiseOfGrey: a method takes the three equal channels of a grey picture for three independent entries, so that its noise level counts √3 times. It
// follows from the picture that is recorded with the item, also without the file.
func TestNoiseOfGrey(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	colour := raster.New(3, 16, 16)
	colour.Pix[0] = 0.5
	for name, c := range map[string]struct {
		image  *raster.Image
		method string
		values map[string]parameter.Value
		want   float64
	}{
		"grey":                  {raster.New(3, 16, 16), "diffpir", nil, 0.05 * math.Sqrt(3)},
		"colour":                {colour, "diffpir", nil, 0.05},
		"level of a person":     {raster.New(3, 16, 16), "diffpir", map[string]parameter.Value{"noise_std": parameter.Number(0.1)}, 0.1},
		"without a noise level": {raster.New(3, 16, 16), "dps", map[string]parameter.Value{"scale": parameter.Number(1)}, 0},
	} {
		data, err := raster.EncodePNG(c.image)
		must(t, err)
		settings, err := method.Builtin().Resolve(method.Request{Method: c.method, Preset: "natural", Task: operator.Denoise, Steps: 5, Sigma: new(0.05), Values: c.values}, 1000)
		must(t, err)
		solver, err := json.Marshal(settings)
		must(t, err)
		it := workertest.Item(t, e, 16, 16, func(it *item.Item) {
			it.Task, it.Params, it.Method, it.Solver = operator.Denoise, nil, c.method, solver
			it.Image, it.Measurement = nil, &item.Source{Path: "y.png", SHA256: regular.SHA256(data)}
		})
		in := Loader{Engine: e, Sources: pictureSource(data)}
		j := planned(t, in, it)
		must(t, in.Measure(t.Context(), j))
		stored := planned(t, in, it)
		stored.Item.Picture = j.Item.Picture
		in.countGrey(stored)
		for _, j := range []*Job{j, stored} {
			if got := j.Plan.Solver.Number("noise_std"); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("%s: noise_std is %g, want %g", name, got, c.want)
			}
		}
	}
}
