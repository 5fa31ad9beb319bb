package gpuworker

import (
	"slices"
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// TestScaleMask: the mask of a picture is scaled to the picture and then mirrored with it. One with the size of the whole image stays.
func TestScaleMask(t *testing.T) {
	t.Parallel()
	data, err := raster.EncodePNG(raster.New(3, 6, 12)) // mirrored to 16×8
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		w, h int
		want string
	}{
		{12, 6, ""}, {6, 3, ""}, {120, 60, ""}, {16, 8, ""}, {8, 8, "refused"},
	} {
		op, err := operator.Builtin().New(operator.Inpaint, nil, operator.Shape{Channels: 3, Height: 8, Width: 16})
		if err != nil {
			t.Fatal(err)
		}
		// The left half is observed.
		mask := &operator.Draw{Name: drawMask, Dims: []int{c.h, c.w}, Data: make([]float32, c.w*c.h)}
		for i := range mask.Data {
			if i%c.w < c.w/2 {
				mask.Data[i] = 1
			}
		}
		tk := &task{op: op, draw: mask, item: manifest.Item{
			Task: operator.Inpaint, Measurement: &manifest.Source{Path: "y.png"}, Mask: &manifest.Source{Path: "mask.png"},
		}}
		err = tk.readPicture("y.png", data)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), "it has 8×8 pixels, the image 12×6") || !strings.Contains(err.Error(), "mask.png") {
				t.Errorf("%d×%d: %v", c.w, c.h, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		half := 6
		if c.w == 16 {
			half = 8
		}
		row := slices.Concat(slices.Repeat([]float32{1}, half), slices.Repeat([]float32{0}, 16-half))
		if got := tk.problem.Draw; len(got) != 16*8 || !slices.Equal(got, slices.Repeat(row, 8)) {
			t.Errorf("%d×%d: the first row of the mask is %v, want %v", c.w, c.h, got[:min(len(got), 16)], row)
		}
	}
}

// TestMissingMask: an item of a task that needs a mask is refused without one.
func TestMissingMask(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.Inpaint, nil, operator.Shape{Channels: 3, Height: 8, Width: 16})
	if err != nil {
		t.Fatal(err)
	}
	tk := &task{op: op, item: manifest.Item{Name: "a", Task: operator.Inpaint, Measurement: &manifest.Source{Path: "y.png", SHA256: strings.Repeat("ab", 32)}}}
	if err := tk.encodeDraw(); err == nil || !strings.Contains(err.Error(), "item a: task inpaint needs a file with its mask") {
		t.Errorf("error %v", err)
	}
}
