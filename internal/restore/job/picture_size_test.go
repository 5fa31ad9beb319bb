package job

import (
	"errors"
	"fmt"
	"image"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// shaped is a task of an image of w×h pixels.
func shaped(t *testing.T, name string, w, h int) *Job {
	t.Helper()
	op, err := operator.Builtin().New(name, nil, operator.Shape{Channels: 3, Height: h, Width: w})
	must(t, err)
	return &Job{Op: op, Item: item.Item{Name: "a", Task: name, Width: w, Height: h, Measurement: &item.Source{Path: "y.png"}}}
}

// TestPictureSizes: a picture may be smaller than the measurement of its task, but by less than half a side, since one reflection fills the
// rest. Beside a true image both have one size. The restored picture has the picture's size, times the scale of the task.
func TestPictureSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w, h      int
		truth, ok bool
	}{
		{48, 32, false, true}, {25, 17, false, true}, {24, 17, false, false}, {25, 16, false, false}, {49, 32, false, false}, {48, 33, false, false},
		{48, 32, true, true}, {47, 32, true, false}, {48, 31, true, false},
	} {
		encoded, err := raster.EncodePNG(raster.New(3, c.h, c.w))
		must(t, err)
		jpeg := orientedJPEG(t, wave(c.w, c.h), 10, 1)
		for name, of := range map[string]struct {
			u     *Job
			data  []byte
			scale int
		}{
			"PNG":                         {shaped(t, operator.Denoise, 48, 32), encoded, 1},
			"PNG, a quarter of the sides": {shaped(t, operator.SuperResolution, 192, 128), encoded, 4},
			"JPEG":                        {storedTask(t, 48, 32, map[string]float64{"quality": 10, "subsampling": 2}), jpeg, 1},
		} {
			if c.truth {
				of.u.truth = &raster.Image{}
			}
			about := fmt.Sprintf("%s of %d×%d, beside an image %v", name, c.w, c.h, c.truth)
			err := of.u.readPicture("y", of.data)
			if !c.ok {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("read measurement y: it has %d×%d pixels, the task needs", c.w, c.h)) {
					t.Errorf("%s: error %v", about, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", about, err)
				continue
			}
			if got := of.u.Item.Picture; got.Width != c.w*of.scale || got.Height != c.h*of.scale {
				t.Errorf("%s: the restored picture has %d×%d pixels", about, got.Width, got.Height)
			}
			if got := of.u.shown(); got.Width != c.w || got.Height != c.h {
				t.Errorf("%s: the measurement is shown with %d×%d pixels", about, got.Width, got.Height)
			}
		}
	}
}

// TestMirrorMask: a mask of a measurement without an image is mirrored as the measurement is, and must have the size of the picture. Other masks are
// left to the check of their shape.
func TestMirrorMask(t *testing.T) {
	t.Parallel()
	mask := func(w, h int) *operator.Draw {
		d := &operator.Draw{Name: drawMask, Dims: []int{h, w}, Data: make([]float32, w*h)}
		for i := range d.Data {
			d.Data[i] = float32((i % w) % 2)
		}
		return d
	}
	for _, c := range []struct {
		name     string
		w, h     int
		mirrored bool
		change   func(u *Job)
	}{
		{"smaller", 13, 9, true, nil},
		{"half as wide", 12, 9, false, nil},
		{"half as high", 13, 8, false, nil},
		{"wider", 25, 16, false, nil},
		{"higher", 24, 17, false, nil},
		{"of the image's size", 24, 16, false, nil},
		{"beside an image", 13, 9, false, func(u *Job) { u.Item.Image = &item.Source{} }},
		{"without a measurement", 13, 9, false, func(u *Job) { u.Item.Measurement = nil }},
		{"a kernel", 13, 9, false, func(u *Job) { u.draw.Name = drawKernel }},
		{"fewer values than its shape", 13, 9, false, func(u *Job) { u.draw.Data = u.draw.Data[1:] }},
		{"of three dimensions", 13, 9, false, func(u *Job) { u.draw.Dims = []int{1, 9, 13} }},
	} {
		u := shaped(t, operator.InpaintRandom, 24, 16)
		u.Item.Mask, u.draw = &item.Source{Path: "mask.png"}, mask(c.w, c.h)
		if c.change != nil {
			c.change(u)
		}
		before := u.draw
		u.mirrorMask()
		if !c.mirrored {
			if u.draw != before || u.mirrored != nil {
				t.Errorf("%s: the mask was mirrored", c.name)
			}
			continue
		}
		if !slices.Equal(u.mirrored, []int{c.h, c.w}) || !slices.Equal(u.draw.Dims, []int{16, 24}) || u.draw.Name != drawMask ||
			!slices.Equal(u.draw.Data, raster.Extend(&raster.Image{Channels: 1, Height: c.h, Width: c.w, Pix: before.Data}, 24, 16).Pix) {
			t.Errorf("%s: shape %v from %v", c.name, u.draw.Dims, u.mirrored)
		}
		for size, fits := range map[image.Point]bool{{X: c.w, Y: c.h}: true, {X: c.w + 1, Y: c.h}: false, {X: c.w, Y: c.h + 1}: false} {
			data, err := raster.EncodePNG(raster.New(3, size.Y, size.X))
			must(t, err)
			err = u.readPicture("y.png", data)
			if want := fmt.Sprintf("read mask mask.png: it has 13×9 pixels, the measurement y.png has %d×%d", size.X, size.Y); fits != (err == nil) ||
				err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: a picture of %v: %v", c.name, size, err)
			}
		}
	}
}

// TestMatchGrey: each pixel of the restored picture of a grey measurement has the mean of its channels. That of a colour measurement stays.
func TestMatchGrey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		picture *item.Picture
		want    []float32
	}{
		"an array":         {nil, []float32{1, 2, 4, 8, 0.5, 0.25}},
		"a colour picture": {&item.Picture{}, []float32{1, 2, 4, 8, 0.5, 0.25}},
		"a grey picture":   {&item.Picture{Grey: true}, []float32{5.5 / 3, 10.25 / 3}},
	} {
		u := shaped(t, operator.Denoise, 24, 16)
		u.Item.Picture = c.picture
		n := 24 * 16
		u.Solution.X = make([]float32, 3*n)
		own := []float32{1, 2, 4, 8, 0.5, 0.25} // two pixels of three channels: the last two of the image
		for ch := range 3 {
			copy(u.Solution.X[ch*n+n-2:], own[2*ch:2*ch+2])
		}
		u.matchPicture()
		for ch := range 3 {
			got, want := u.Solution.X[ch*n+n-2:][:2], c.want[len(c.want)-2:]
			if len(c.want) == 6 {
				want = c.want[2*ch : 2*ch+2]
			}
			if !(math.Abs(float64(got[0]-want[0])) < 1e-6 && math.Abs(float64(got[1]-want[1])) < 1e-6) || u.Solution.X[ch*n+n-3] != 0 {
				t.Errorf("%s: channel %d is %v, want %v", name, ch, got, want)
			}
		}
	}
}

// TestRangeRemedies: a measurement with values outside of its task's range is refused with the remedy for its case.
func TestRangeRemedies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		low, high float32
		stated    *item.ValueRange
		want      string // empty: accepted
	}{
		"from -1 to 1":                 {-1, 1, nil, ""},
		"from 0 to 1":                  {0, 1, nil, "zero may be black or mid-grey: give the values of black and white with --measurement-range 0,1 or --measurement-range -1,1"},
		"from 0 to 1, stated":          {0, 1, &item.ValueRange{0, 1}, ""},
		"from 0 to 255":                {0, 255, nil, "needs -1 to 1: give the values of black and white with --measurement-range LOW,HIGH"},
		"from 0 to 255, stated":        {0, 255, &item.ValueRange{0, 255}, ""},
		"from 0 to 255, stated as 0,1": {0, 255, &item.ValueRange{0, 1}, "needs -1 to 1: after black and white at 0 and 1; correct --measurement-range"},
	} {
		u := shaped(t, operator.Denoise, 24, 16)
		u.Problem.Y = make([]float32, u.Op.MeasurementSize())
		for i := range u.Problem.Y {
			u.Problem.Y[i] = c.low + (c.high-c.low)*float32(i%2)
		}
		u.Item.MeasurementRange = c.stated
		err := u.checkRange("y.npy")
		if c.want == "" {
			if err != nil || slices.Min(u.Problem.Y) != -1 || slices.Max(u.Problem.Y) != 1 {
				t.Errorf("%s: %v, y from %g to %g", name, err, slices.Min(u.Problem.Y), slices.Max(u.Problem.Y))
			}
			continue
		}
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "read measurement y.npy: ") || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// Of a measurement that is no picture the range is that of A(x).
	u := shaped(t, operator.PhaseRetrieval, 24, 16)
	u.Problem.Y = slices.Repeat([]float32{-1e6}, u.Op.MeasurementSize())
	if err := u.checkRange("y.npy"); err == nil || !strings.HasSuffix(err.Error(), ": give the values of A(x)") {
		t.Errorf("phase retrieval: %v", err)
	}
}
