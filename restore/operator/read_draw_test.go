package operator_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"

	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// greyPNG returns a PNG of two rows of grey levels.
func greyPNG(t *testing.T, levels [2][3]uint8) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	for y, row := range levels {
		for x, v := range row {
			img.SetGray(x, y, color.Gray{Y: v})
		}
	}
	var out bytes.Buffer
	must(t, png.Encode(&out, img))
	return out.Bytes()
}

// TestReadDraw reads masks and kernels of pictures and arrays.
func TestReadDraw(t *testing.T) {
	t.Parallel()
	array := func(shape ...int) []byte {
		data, err := raster.EncodeNPY(shape, []float32{0.25, 2, 0, 1, 0.5, -1})
		must(t, err)
		return data
	}
	values := []float32{0.25, 2, 0, 1, 0.5, -1}
	for _, tt := range []struct {
		name   string
		data   []byte
		kind   string
		dims   []int
		values []float32
	}{
		{"mask from mid-grey up", greyPNG(t, [2][3]uint8{{0, 127, 128}, {255, 1, 254}}), "mask", []int{2, 3}, []float32{0, 0, 1, 1, 0, 1}},
		{"kernel of the sum 1", greyPNG(t, [2][3]uint8{{0, 51, 0}, {51, 0, 102}}), "kernel", []int{2, 3}, []float32{0, 0.25, 0, 0.25, 0, 0.5}},
		{"black kernel", greyPNG(t, [2][3]uint8{}), "kernel", []int{2, 3}, make([]float32, 6)},
		{"array", array(2, 3), "kernel", []int{2, 3}, values},
		{"array of one channel", array(1, 1, 2, 3), "mask", []int{2, 3}, values},
		{"array of one row", array(1, 6), "kernel", []int{1, 6}, values},
		{"array of two channels", array(2, 1, 3), "mask", []int{2, 1, 3}, values},
	} {
		d, err := operator.ReadDraw(tt.kind, tt.data)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		near := slices.EqualFunc(d.Data, tt.values, func(x, y float32) bool { return x-y < 1e-6 && y-x < 1e-6 })
		if d.Name != tt.kind || !slices.Equal(d.Dims, tt.dims) || !near {
			t.Errorf("%s: %+v, want %v %v", tt.name, d, tt.dims, tt.values)
		}
	}
	var transparent bytes.Buffer
	must(t, png.Encode(&transparent, image.NewNRGBA(image.Rect(0, 0, 3, 2))))
	for name, data := range map[string][]byte{"text": []byte("mask"), "cut array": array(2, 3)[:90], "transparent": transparent.Bytes()} {
		if d, err := operator.ReadDraw("mask", data); err == nil {
			t.Errorf("%s: read as %+v", name, d)
		}
	}
}
