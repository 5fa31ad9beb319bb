package operator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
)

// TestFilePictureShape: the sides of the image suit the file and the prior, and the measurement is not smaller than the picture.
func TestFilePictureShape(t *testing.T) {
	t.Parallel()
	of := func(f *File, change func(f *File)) *File {
		change(f)
		return f
	}
	fixed := func(f *File) { f.x.Dims, f.y.Dims = []int{-1, 3, 64, 32}, []int{-1, 3, 32, 16} }
	for name, c := range map[string]struct {
		file          *File
		height, width int // of the picture
		image, y      Shape
		text          string // of the error
	}{
		"same size":           {sized("H", "W"), 16, 24, Shape{3, 16, 24}, Shape{3, 16, 24}, ""},
		"mirrored":            {sized("H", "W"), 15, 17, Shape{3, 16, 24}, Shape{3, 16, 24}, ""},
		"half":                {sized("H/2", "W/2"), 29, 33, Shape{3, 64, 72}, Shape{3, 32, 36}, ""},
		"third":               {sized("H/3", "W/3"), 8, 9, Shape{3, 24, 48}, Shape{3, 8, 16}, ""},
		"twice":               {sized("H*2", "W*2"), 30, 33, Shape{3, 16, 24}, Shape{3, 32, 48}, ""},
		"multiples of 24":     {of(sized("H", "W"), func(f *File) { f.multipleOf = 6 }), 20, 24, Shape{3, 24, 24}, Shape{3, 24, 24}, ""},
		"too small":           {sized("H", "W"), 4, 24, Shape{}, Shape{}, "no image has a picture of 24×4 pixels"},
		"one channel":         {of(sized("H", "W"), func(f *File) { f.y.Dims[1] = 1 }), 16, 15, Shape{3, 16, 16}, Shape{1, 16, 16}, ""},
		"four channels":       {of(sized("H", "W"), func(f *File) { f.y.Dims[1] = 4 }), 16, 16, Shape{}, Shape{}, "is [N, 4, H, W], a picture has 1 or 3 channels; give the values of A(x) as .npy"},
		"no picture":          {of(sized(), func(f *File) { f.y = modelfile.Port{Dims: []int{-1, 9}, DimNames: []string{"N", ""}} }), 16, 16, Shape{}, Shape{}, "is [N, 9], a picture"},
		"fixed":               {of(sized("", ""), fixed), 32, 16, Shape{3, 64, 32}, Shape{3, 32, 16}, ""},
		"fixed, mirrored":     {of(sized("", ""), fixed), 31, 9, Shape{3, 64, 32}, Shape{3, 32, 16}, ""},
		"larger than fixed":   {of(sized("", ""), fixed), 33, 16, Shape{}, Shape{}, "is for images of 32×64 pixels with measurements of shape [3 32 16], got a picture of 16×33 pixels"},
		"half of fixed":       {of(sized("", ""), fixed), 16, 16, Shape{}, Shape{}, "got a picture of 16×16 pixels"},
		"fixed, not of prior": {of(sized("", ""), func(f *File) { f.x.Dims, f.y.Dims = []int{-1, 3, 12, 12}, []int{-1, 3, 12, 12} }), 12, 12, Shape{}, Shape{}, "is for images of 12×12 pixels"},
	} {
		image, y, err := c.file.pictureShape("own", nil, Shape{3, c.height, c.width}, 8)
		if image != c.image || y != c.y || (err != nil) != (c.text != "") {
			t.Errorf("%s: image %v, measurement %v, error %v, want %v, %v", name, image, y, err, c.image, c.y)
		}
		if err != nil && (!errors.Is(err, ErrShape) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: error %v, want %s", name, err, c.text)
		}
	}
}

// TestChannelsLast: an array [rows, columns, channels] gets the remedy, for built-in tasks and for operators from files.
func TestChannelsLast(t *testing.T) {
	t.Parallel()
	op := Build(t, "hdr", nil, Shape{3, 16, 24})
	for _, c := range []struct {
		found []int
		fits  bool
		last  bool
	}{{[]int{3, 16, 24}, true, false}, {[]int{1, 1, 3, 16, 24}, true, false}, {[]int{16, 24, 3}, false, true}, {[]int{3, 24, 16}, false, false}, {[]int{16, 24}, false, false}} {
		err := op.CheckShape(c.found)
		if (err == nil) != c.fits || err != nil && strings.Contains(err.Error(), "channels first") != c.last {
			t.Errorf("%v: error %v", c.found, err)
		}
	}
	set := append(slices.Clone(Builtin()), sized("H", "W").Definition("own"))
	for _, task := range []string{"hdr", "super_resolution", "own"} {
		for _, shape := range [][]int{{16, 24, 3}, {16, 24, 1}, {5, 24, 4}} {
			if _, err := set.ImageShape(task, nil, shape); !errors.Is(err, ErrShape) || !strings.Contains(err.Error(), "put the channels first") {
				t.Errorf("%s: a measurement %v: error %v", task, shape, err)
			}
		}
	}
	for _, shape := range [][]int{{3, 16, 3}, {4, 16, 4}, {16, 24, 5}} {
		if _, err := set.ImageShape("hdr", nil, shape); err == nil || strings.Contains(err.Error(), "channels first") {
			t.Errorf("a measurement %v: error %v", shape, err)
		}
	}
}

// TestFileChannels: a file for images of other channels than those of the prior is refused.
func TestFileChannels(t *testing.T) {
	t.Parallel()
	if err := sized("H", "W").Fits(17, 1); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "its images x have 3 channels, those of the prior 1") {
		t.Errorf("error %v", err)
	}
}
