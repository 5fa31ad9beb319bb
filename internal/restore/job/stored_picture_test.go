package job

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// orientedJPEG is a JPEG file with an EXIF orientation.
func orientedJPEG(t *testing.T, src image.Image, quality int, orientation byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, src, &jpeg.Options{Quality: quality}))
	exif := append([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00"), orientation, 0, 0, 0, 0, 0, 0, 0)
	segment := append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2)), exif...)
	return slices.Concat(buf.Bytes()[:2], segment, buf.Bytes()[2:])
}

func wave(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			level := func(f float64) uint8 { return uint8(128 + 100*math.Sin(float64(x)*f/5)*math.Cos(float64(y)/(4+f))) }
			img.Set(x, y, color.RGBA{level(1), level(1.3), level(0.8), 255})
		}
	}
	return img
}

func storedTask(t *testing.T, w, h int, params map[string]float64) *Job {
	t.Helper()
	op, err := operator.Builtin().New(operator.JPEG, params, operator.Shape{Channels: 3, Height: h, Width: w})
	must(t, err)
	return &Job{Op: op, Item: item.Item{Name: "a", Task: operator.JPEG, Width: w, Height: h}}
}

// TestStoredPicture: y of a JPEG file has the blocks of the file, also where sides are no multiples of 16 and the file is turned or
// mirrored: A(y) = y up to the rounding of samples, on the mirrored border too. The restored picture is upright.
func TestStoredPicture(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{58, 42}, {64, 48}, {33, 47}} {
		for orientation := range byte(8) {
			data := orientedJPEG(t, wave(size.X, size.Y), 10, orientation+1)
			upright, err := raster.DecodePicture(data)
			must(t, err)
			w, h := (size.X+31)/32*32, (size.Y+31)/32*32
			u := storedTask(t, w, h, map[string]float64{"quality": 10, "subsampling": 2})
			must(t, u.readStored("a.jpg", data))
			u.Solution.X = u.Problem.Y
			got := u.Restored()
			if got.Width != upright.Image.Width || got.Height != upright.Image.Height || !slices.Equal(got.Pix, upright.Image.Pix) {
				t.Fatalf("%v, orientation %d: the restored picture is not the decoded one: %d×%d", size, orientation+1, got.Width, got.Height)
			}
			if shown := u.shown(); shown.Width != got.Width || !slices.Equal(shown.Pix, got.Pix) {
				t.Errorf("%v, orientation %d: the shown measurement is not upright", size, orientation+1)
			}
			if rw, rh := u.Item.RestoredSize(); rw != got.Width || rh != got.Height {
				t.Errorf("%v, orientation %d: the item has a restored picture of %d×%d", size, orientation+1, rw, rh)
			}
			if orientation > 0 {
				continue
			}
			f, err := operator.NewForward(onnxtest.Runtime(t), u.Op)
			must(t, err)
			again, err := f.Apply(t.Context(), u.Problem.Y, nil)
			must(t, err)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			sum := 0.0
			for i, v := range again {
				sum += math.Pow(127.5*float64(v-u.Problem.Y[i]), 2)
			}
			if rms := math.Sqrt(sum / float64(len(again))); !(rms <= 2) {
				t.Errorf("%v: A(y) differs from y by %.2g levels", size, rms)
			}
		}
	}
}

// A quality that is not the file's is refused, other tables are a warning.
func TestStoredPictureQuality(t *testing.T) {
	t.Parallel()
	data := orientedJPEG(t, wave(32, 32), 30, 1)
	err := storedTask(t, 32, 32, nil).readStored("a.jpg", data)
	if err == nil || !strings.Contains(err.Error(), "quality 30, the item has 10") {
		t.Errorf("error %v", err)
	}
	at := bytes.Index(data, []byte{0xff, 0xdb})
	changed := bytes.Clone(data)
	changed[at+5] = 200 // the DC step of luma
	u := storedTask(t, 32, 32, map[string]float64{"quality": 30, "subsampling": 2})
	if err := u.readStored("a.jpg", changed); err != nil || len(u.Warnings) != 1 || u.Warnings[0].Code != photograph.WarnTables ||
		!strings.Contains(u.Warnings[0].Text, "the nearest is 30, 30 is in use") {
		t.Errorf("%v, warnings %+v", err, u.Warnings)
	}
	u = storedTask(t, 32, 32, map[string]float64{"quality": 30, "subsampling": 2})
	u.truth = &raster.Image{}
	if err := u.readStored("a.jpg", orientedJPEG(t, wave(32, 32), 30, 3)); err == nil || !strings.Contains(err.Error(), "orientation 3") {
		t.Errorf("error %v", err)
	}
}

// TestMosaicOrientation: the filter of a mosaic lies as in the file. The orientation turns the restored picture, and a true image beside such a file is
// refused.
func TestMosaicOrientation(t *testing.T) {
	t.Parallel()
	const w, h = 21, 11
	grey := image.NewGray(image.Rect(0, 0, w, h))
	for i := range grey.Pix {
		grey.Pix[i] = byte(i * 37 % 251)
	}
	op, err := operator.Builtin().New(operator.Demosaic, nil, operator.Shape{Channels: 3, Height: 16, Width: 24})
	must(t, err)
	file := func(orientation byte) []byte { return orientedJPEG(t, grey, 100, orientation) }
	var lying []float32
	for orientation := byte(1); orientation <= 8; orientation++ {
		u := &Job{Op: op, Item: item.Item{Name: "a", Task: operator.Demosaic, Width: 24, Height: 16}}
		must(t, u.readPicture("a.jpg", file(orientation)))
		if lying == nil {
			lying = u.Problem.Y
		}
		if !slices.Equal(u.Problem.Y, lying) {
			t.Errorf("orientation %d: the mosaic is turned", orientation)
		}
		upright, err := raster.DecodePicture(file(orientation))
		must(t, err)
		u.Solution.X = slices.Repeat(u.Problem.Y, 3)
		if got := u.Restored(); got.Width != upright.Image.Width || !slices.Equal(got.Pix, upright.Image.Pix) {
			t.Errorf("orientation %d: the restored picture of %d×%d pixels is not upright", orientation, got.Width, got.Height)
		}
		u.truth = &raster.Image{}
		if err := u.readPicture("a.jpg", file(orientation)); orientation > 1 && (err == nil || !strings.Contains(err.Error(), "EXIF")) {
			t.Errorf("orientation %d: error %v", orientation, err)
		}
	}
}
