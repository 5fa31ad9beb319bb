package job

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestScaleMask: the mask of a picture is scaled to the picture and then mirrored with it. One with the size of the whole image stays.
func TestScaleMask(t *testing.T) {
	t.Parallel()
	data, err := raster.EncodePNG(raster.New(3, 6, 12)) // mirrored to 16×8
	must(t, err)
	for _, c := range []struct {
		w, h int
		want string
	}{
		{12, 6, ""}, {6, 3, ""}, {120, 60, ""}, {16, 8, ""}, {8, 8, "refused"},
	} {
		op, err := operator.Builtin().New(operator.Inpaint, nil, operator.Shape{Channels: 3, Height: 8, Width: 16})
		must(t, err)
		// The left half is observed.
		mask := &operator.Draw{Name: drawMask, Dims: []int{c.h, c.w}, Data: make([]float32, c.w*c.h)}
		for i := range mask.Data {
			if i%c.w < c.w/2 {
				mask.Data[i] = 1
			}
		}
		tk := &Job{Op: op, draw: mask, Item: item.Item{
			Task: operator.Inpaint, Measurement: &item.Source{Path: "y.png"}, Mask: &item.Source{Path: "mask.png"},
		}}
		err = tk.readPicture("y.png", data)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), "it has 8×8 pixels, the image 12×6") || !strings.Contains(err.Error(), "mask.png") {
				t.Errorf("%d×%d: %v", c.w, c.h, err)
			}
			continue
		}
		must(t, err)
		half := 6
		if c.w == 16 {
			half = 8
		}
		row := slices.Concat(slices.Repeat([]float32{1}, half), slices.Repeat([]float32{0}, 16-half))
		if got := tk.Problem.Draw; len(got) != 16*8 || !slices.Equal(got, slices.Repeat(row, 8)) {
			t.Errorf("%d×%d: the first row of the mask is %v, want %v", c.w, c.h, got[:min(len(got), 16)], row)
		}
	}
}

// TestScaleTaskMask: the mask of a campaign's task is scaled to a simulated measurement. That of a row, or of a stored measurement, is not.
func TestScaleTaskMask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		item item.Item
		want string
	}{
		{"of the task", item.Item{FromTask: true}, ""},
		{"of the row", item.Item{}, "its shape is [4 8], the image is 16×8"},
		{"of a stored measurement", item.Item{FromTask: true, Measurement: &item.Source{Path: "y.npy"}}, "its shape is [4 8], the image is 16×8"},
	} {
		op, err := operator.Builtin().New(operator.InpaintBox, map[string]float64{"size": 64, "margin": 16}, operator.Shape{Channels: 3, Height: 8, Width: 16})
		must(t, err)
		mask := &operator.Draw{Name: drawMask, Dims: []int{4, 8}, Data: slices.Repeat([]float32{1, 1, 1, 1, 0, 0, 0, 0}, 4)}
		tk := &Job{Op: op, draw: mask, Item: c.item}
		tk.Item.Image, tk.Item.Mask = &item.Source{Path: "x.png"}, &item.Source{Path: "mask.png"}
		err = tk.fitMask(16, 8)
		if err == nil {
			err = tk.encodeDraw()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		row := slices.Concat(slices.Repeat([]float32{1}, 8), slices.Repeat([]float32{0}, 8))
		if c.want == "" && !slices.Equal(tk.Problem.Draw, slices.Repeat(row, 8)) {
			t.Errorf("%s: mask %v", c.name, tk.Problem.Draw)
		}
	}
}

// TestMissingMask: an item of a task that needs a mask is refused without one.
func TestMissingMask(t *testing.T) {
	t.Parallel()
	op, err := operator.Builtin().New(operator.Inpaint, nil, operator.Shape{Channels: 3, Height: 8, Width: 16})
	must(t, err)
	tk := &Job{Op: op, Item: item.Item{Name: "a", Task: operator.Inpaint, Measurement: &item.Source{Path: "y.png", SHA256: strings.Repeat("ab", 32)}}}
	if err := tk.encodeDraw(); err == nil || !strings.Contains(err.Error(), "item a: task inpaint needs a file with its mask") {
		t.Errorf("error %v", err)
	}
}

// TestDrawOfPicture: a stored picture needs the mask or the kernel that it was taken with. A random one of the item is refused.
func TestDrawOfPicture(t *testing.T) {
	t.Parallel()
	data, err := raster.EncodePNG(raster.New(3, 16, 24))
	must(t, err)
	file := &item.Source{Path: "file"}
	for name, c := range map[string]struct {
		task         string
		mask, kernel *item.Source
		want         string
	}{
		"no mask":   {operator.InpaintRandom, nil, nil, "needs the mask with which the picture was taken; give --mask"},
		"mask":      {operator.InpaintRandom, file, nil, ""},
		"no kernel": {operator.MotionDeblur, nil, nil, "needs the kernel with which the picture was taken; give --kernel"},
		"kernel":    {operator.MotionDeblur, nil, file, ""},
	} {
		u := shaped(t, c.task, 24, 16)
		u.Item.Mask, u.Item.Kernel, u.draw = c.mask, c.kernel, u.Op.Draw(noise.Key{1})
		if err := u.readPicture("y.png", data); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestMeasureFromFile: the values of a .npy file are checked against the range of the task, and a mask beside it has the sides of the image.
func TestMeasureFromFile(t *testing.T) {
	t.Parallel()
	values := func(high float32) []byte {
		y := make([]float32, 3*8*16)
		for i := range y {
			y[i] = high * float32(i%2*2-1)
		}
		data, err := raster.EncodeNPY([]int{1, 3, 8, 16}, y)
		must(t, err)
		return data
	}
	mask := func(w, h int) *operator.Draw {
		return &operator.Draw{Name: drawMask, Dims: []int{h, w}, Data: slices.Repeat([]float32{1}, w*h)}
	}
	for name, c := range map[string]struct {
		high float32
		mask *operator.Draw
		want string
	}{
		"good":            {1, mask(16, 8), ""},
		"a scaled mask":   {1, mask(32, 16), ""},
		"another mask":    {1, mask(8, 8), "read mask.png: "},
		"values of bytes": {255, mask(32, 16), "the task inpaint needs -1 to 1"},
	} {
		u := shaped(t, operator.Inpaint, 16, 8)
		data := values(c.high)
		u.draw, u.Item.Mask, u.Item.Measurement = c.mask, &item.Source{Path: "mask.png"}, &item.Source{Path: "y.npy", SHA256: regular.SHA256(data)}
		err := Loader{Sources: pictureSource(data)}.Measure(t.Context(), u)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && (len(u.Problem.Y) != 3*8*16 || len(u.Problem.Draw) != 8*16) {
			t.Errorf("%s: %d values and a mask of %d", name, len(u.Problem.Y), len(u.Problem.Draw))
		}
	}
}

// TestKeepObserved: the observed pixels of a measurement are those of the restored picture, to the bit, in each form of file.
func TestKeepObserved(t *testing.T) {
	t.Parallel()
	for _, bits := range []int{8, 16} {
		img := raster.New(3, 8, 8)
		for i := range img.Pix {
			img.Pix[i] = 2*float32(i*331%65536)/65535 - 1
		}
		data, err := raster.EncodePicture(img, raster.Picture{Bits: bits})
		must(t, err)
		source, err := raster.DecodePicture(data)
		must(t, err)
		op, err := operator.Builtin().New(operator.Inpaint, nil, operator.Shape{Channels: 3, Height: 8, Width: 8})
		must(t, err)
		mask := &operator.Draw{Name: drawMask, Dims: []int{8, 8}, Data: slices.Repeat([]float32{1, 1, 1, 0}, 16)}
		tk := &Job{Op: op, draw: mask, Item: item.Item{Task: operator.Inpaint, Measurement: &item.Source{Path: "y.png"}, Mask: &item.Source{Path: "mask.png"}, Width: 8, Height: 8}}
		must(t, tk.readPicture("y.png", data))
		tk.Solution.X = make([]float32, 3*8*8)
		if got := tk.Restored().Pix; slices.ContainsFunc(got, func(v float32) bool { return v != 0 }) {
			t.Error("observed pixels are kept without the setting")
		}
		tk.Item.KeepObserved = true
		file, err := raster.EncodePicture(tk.Restored(), tk.Picture())
		must(t, err)
		again, err := raster.DecodePicture(file)
		must(t, err)
		for i, v := range again.Image.Pix {
			switch kept := mask.Data[i%64] == 1; {
			case kept && v != source.Image.Pix[i]:
				t.Fatalf("%d bits: the observed value %d is %v, want %v", bits, i, v, source.Image.Pix[i])
			case !kept && max(v, -v) > 0.01:
				t.Fatalf("%d bits: the lost value %d is %v", bits, i, v)
			}
		}
	}
}

// TestFillSeesNoLostSample: what lost samples were changes no filled one, also in holes of several pixels.
func TestFillSeesNoLostSample(t *testing.T) {
	t.Parallel()
	const side = 16
	r := rand.New(rand.NewPCG(1, 2))
	seen, missing := make([]float32, side*side), make([]bool, side*side)
	for i := range seen {
		seen[i], missing[i] = float32(r.NormFloat64()), i%side == i/side || i%side == i/side+1 || r.Float64() < 0.2
	}
	fill := func(lost float32) []float32 {
		p := plane{height: side, width: side, v: slices.Clone(seen)}
		for i, m := range missing {
			if m {
				p.v[i] = lost
			}
		}
		p.fill(slices.Clone(missing))
		return p.v
	}
	if !slices.Equal(fill(-1), fill(1)) {
		t.Error("lost samples change what fills them")
	}
}
