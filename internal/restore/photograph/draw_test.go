package photograph_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// drawn returns a PNG file of w by h pixels.
func drawn(t testing.TB, w, h int, at func(x, y int) color.NRGBA) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.SetNRGBA(i%w, i/w, at(i%w, i/w))
	}
	var out bytes.Buffer
	must(t, png.Encode(&out, img))
	return out.Bytes()
}

func grey(v uint8) color.NRGBA { return color.NRGBA{v, v, v, 255} }

func array(t testing.TB, shape []int, values ...float32) []byte {
	t.Helper()
	data, err := raster.EncodeNPY(shape, values)
	must(t, err)
	return data
}

func zipped(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, data := range files {
		w, err := z.Create(name)
		must(t, err)
		_, err = w.Write(data)
		must(t, err)
	}
	must(t, z.Close())
	return out.Bytes()
}

func lost(f *photograph.DrawFile) (n int) {
	for _, v := range f.Draw.Data {
		if v == 0 {
			n++
		}
	}
	return n
}

const side = 40

// scratch reports whether a pixel lies on a scratch: 80 of 1600.
func scratch(x, y int) bool { return (x-y+side)%side < 2 }

// scene is the colour of a pixel of a photograph.
func scene(x, y int) color.NRGBA {
	return color.NRGBA{uint8(60 + 3*x), uint8(90 + 2*y), uint8(120 + x + y), 255}
}

// TestMasks reads masks as people draw them.
func TestMasks(t *testing.T) {
	t.Parallel()
	pick := func(scratched, other color.NRGBA) func(x, y int) color.NRGBA {
		return func(x, y int) color.NRGBA {
			if scratch(x, y) {
				return scratched
			}
			return other
		}
	}
	black, white, clear, red := grey(0), grey(255), color.NRGBA{}, color.NRGBA{255, 0, 0, 255}
	const strokes = 80
	for name, c := range map[string]struct {
		at          func(x, y int) color.NRGBA
		lost        int
		note, doubt string // doubt also of an error
	}{
		"black on white":            {pick(black, white), strokes, "", ""},
		"black on transparent":      {pick(black, clear), strokes, "", ""},
		"white on transparent":      {pick(white, clear), strokes, "the strokes on its transparent layer, 5 % of the pixels, count as lost", ""},
		"red on transparent":        {pick(red, clear), strokes, "the strokes on its transparent layer, 5 % of the pixels, count as lost", ""},
		"erased from white":         {pick(clear, white), strokes, "its transparent pixels, 5 %, count as lost", ""},
		"labels 0 and 1":            {pick(black, grey(1)), strokes, "its levels are 0 and 1 of 255: 1 counts as white", ""},
		"white on black (inverted)": {pick(white, black), side*side - strokes, "", "is it inverted?"},
		"red on white":              {pick(red, white), -1, "", "80 of its pixels have a colour"},
		"erased from a photograph": {func(x, y int) color.NRGBA {
			if scratch(x, y) {
				return clear
			}
			return scene(x, y)
		}, strokes, "its transparent pixels, 5 %, count as lost", ""},
		"red on a photograph": {func(x, y int) color.NRGBA {
			if scratch(x, y) {
				return red
			}
			return scene(x, y)
		}, -1, "", "neither black nor white, as in a photograph; in a white picture"},
		"a photograph": {scene, -1, "", "neither black nor white, as in a photograph"},
		"soft edges": {func(x, y int) color.NRGBA {
			return grey([]uint8{0, 0, 200, 250}[min(3, (x-y+side)%side)])
		}, 120, "it has soft edges, 2.5 % of its pixels, which count as lost", ""},
		"three labels": {func(x, _ int) color.NRGBA { return grey(uint8(x / 15)) }, -1, "", "it has 3 levels from 0 to 2 of 255, as labels have"},
		"every second pixel of both axes": {func(x, y int) color.NRGBA {
			if x%2 == 0 && y%2 == 0 {
				return white
			}
			return black
		}, side * side * 3 / 4, "", ""},
	} {
		data := drawn(t, side, side, c.at)
		f, err := photograph.ReadDraw(photograph.Mask, data, item.DrawForm{})
		if err != nil {
			if c.lost >= 0 || !errors.Is(err, operator.ErrParam) || !strings.Contains(err.Error(), c.doubt) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		notes := strings.Join(f.Notes, "; ")
		if lost(f) != c.lost || !strings.Contains(f.Doubt, c.doubt) || (c.doubt == "") != (f.Doubt == "") || notes != c.note {
			t.Errorf("%s: %d pixels lost, want %d; notes %q, want %q; doubt %q, want %q", name, lost(f), c.lost, notes, c.note, f.Doubt, c.doubt)
		}
		if !slices.Equal(f.Draw.Dims, []int{side, side}) || f.Draw.Name != photograph.Mask {
			t.Errorf("%s: %s %v", name, f.Draw.Name, f.Draw.Dims)
		}
	}
	// Masks whose bright pixels are lost.
	lostForm := item.DrawForm{MaskShows: item.MaskLost}
	soft := func(x, y int) color.NRGBA { return grey([]uint8{255, 255, 55, 5}[min(3, (x-y+side)%side)]) }
	ones := array(t, []int{2, 2}, 0, 1, 1, 1)
	for name, c := range map[string]struct {
		data []byte
		lost int
	}{
		"white strokes": {drawn(t, side, side, pick(white, black)), strokes}, "soft edges": {drawn(t, side, side, soft), 120},
		"labels": {drawn(t, side, side, pick(grey(1), black)), strokes}, "array": {ones, 3}, "layer": {drawn(t, side, side, pick(black, clear)), strokes},
	} {
		if f, err := photograph.ReadDraw(photograph.Mask, c.data, lostForm); err != nil || lost(f) != c.lost || f.Doubt != "" {
			t.Errorf("%s: %+v, %v, want %d lost pixels", name, f, err, c.lost)
		}
	}
	// A mask that was saved as JPEG: the overshoot of edges is no soft edge of the whole picture.
	img := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range img.Pix {
		if img.Pix[i] = 255; i%64 >= 20 && i%64 < 28 {
			img.Pix[i] = 0
		}
	}
	var asJPEG bytes.Buffer
	must(t, jpeg.Encode(&asJPEG, img, &jpeg.Options{Quality: 85}))
	f, err := photograph.ReadDraw(photograph.Mask, asJPEG.Bytes(), item.DrawForm{})
	if err != nil || f.Doubt != "" || lost(f) < 8*64 || lost(f) > 14*64 {
		t.Errorf("JPEG: %+v, %v", f, err)
	}
}

// TestMaskArrays reads arrays and archives of them.
func TestMaskArrays(t *testing.T) {
	t.Parallel()
	whole := array(t, []int{1, 1, 2, 3}, 1, 1, 0, 1, 1, 1)
	for name, data := range map[string][]byte{
		"zeros and ones": whole, "0 and 255": array(t, []int{2, 3}, 255, 255, 0, 255, 255, 255),
		"archive of one": zipped(t, map[string][]byte{"arr_0.npy": whole}), "archive of two": zipped(t, map[string][]byte{"mask.npy": whole, "x.npy": nil}),
	} {
		f, err := photograph.ReadDraw(photograph.Mask, data, item.DrawForm{})
		if err != nil || !slices.Equal(f.Draw.Data, []float32{1, 1, 0, 1, 1, 1}) || !slices.Equal(f.Draw.Dims, []int{2, 3}) || f.Doubt != "" {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if f, err := photograph.ReadDraw(photograph.Mask, array(t, []int{2, 1, 3}, make([]float32, 6)...), item.DrawForm{}); err != nil || len(f.Draw.Dims) != 3 {
		t.Errorf("two channels: %+v, %v", f, err)
	}
}

// TestBadFiles: one line with the remedy.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	whole := array(t, []int{2, 3}, make([]float32, 6)...)
	archive := zipped(t, map[string][]byte{"a.npy": whole, "b.npy": whole})
	for name, c := range map[string]struct {
		data []byte
		text string
		want error
	}{
		"text":       {[]byte("mask"), "not a PNG", raster.ErrFormat},
		"empty":      {nil, "empty", raster.ErrTruncated},
		"cut array":  {whole[:90], "the file ends in the header", raster.ErrTruncated},
		"MATLAB":     {[]byte("MATLAB 5.0 MAT-file, Platform"), "scipy.io.loadmat('FILE.mat')", raster.ErrFormat},
		"MATLAB 7.3": {[]byte("\x89HDF\r\n\x1a\n"), "it is a file of MATLAB", raster.ErrFormat},
		"two arrays": {archive, `"a"`, raster.ErrFormat},
		"no arrays":  {zipped(t, map[string][]byte{"a.txt": nil}), "give one of them as .npy", raster.ErrFormat},
		"cut zip":    {archive[:len(archive)-30], "read the archive", raster.ErrFormat},
	} {
		_, err := photograph.ReadDraw(photograph.Kernel, c.data, item.DrawForm{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
}

// stroke is the light of a motion in a frame of 9×9 pixels.
func stroke(x, y int) bool {
	return x == 8 && y == 2 || y == 3 && (x == 6 || x == 7) || y == 4 && (x == 4 || x == 5)
}

// TestKernels reads kernels as people draw them: all are the same motion.
func TestKernels(t *testing.T) {
	t.Parallel()
	pick := func(light, other color.NRGBA) func(x, y int) color.NRGBA {
		return func(x, y int) color.NRGBA {
			if stroke(x, y) {
				return light
			}
			return other
		}
	}
	const frame, at = 128, 60 // the motion lies about the centre of a frame
	values := make([]float32, 81)
	for i := range values {
		if stroke(i%9, i/9) {
			values[i] = 0.2
		}
	}
	large := make([]float32, frame*frame)
	corner := make([]float32, frame*frame)
	for i, v := range values {
		large[(at+i/9)*frame+at+i%9] = v
		corner[i/9*frame+i%9] = v
	}
	for name, c := range map[string]struct {
		data  []byte
		notes string
	}{
		"white on black":       {drawn(t, 9, 9, pick(grey(255), grey(0))), ""},
		"grey on black":        {drawn(t, 9, 9, pick(grey(77), grey(0))), ""},
		"black on white":       {drawn(t, 9, 9, pick(grey(0), grey(255))), "it was dark on white and has been inverted"},
		"black on transparent": {drawn(t, 9, 9, pick(grey(0), color.NRGBA{})), "whose opacity counts"},
		"white on transparent": {drawn(t, 9, 9, pick(grey(255), color.NRGBA{})), "whose opacity counts"},
		"on a dark background": {drawn(t, 9, 9, pick(grey(255), grey(9))), "its background, 9 of 255, counts as black"},
		"array":                {array(t, []int{9, 9}, values...), ""},
		"archive":              {zipped(t, map[string][]byte{"kernel.npy": array(t, []int{9, 9}, values...), "z.npy": nil}), ""},
		"large frame":          {array(t, []int{frame, frame}, large...), ""},
	} {
		f, err := photograph.ReadDraw(photograph.Kernel, c.data, item.DrawForm{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same := slices.EqualFunc(f.Draw.Data, values, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 })
		want := 1
		if c.notes != "" {
			want++
		}
		if notes := strings.Join(f.Notes, "; "); !same || !slices.Equal(f.Draw.Dims, []int{9, 9}) || f.Doubt != "" || !strings.Contains(notes, c.notes) || len(f.Notes) != want ||
			!strings.Contains(notes, "the mean of its light lies 2 pixels to the right and 0.8 above its centre: the restored picture may be shifted by as much") {
			t.Errorf("%s: %v %v, %q, doubt %q", name, f.Draw.Dims, f.Draw.Data, notes, f.Doubt)
		}
	}
	f, err := photograph.ReadDraw(photograph.Kernel, array(t, []int{frame, frame}, corner...), item.DrawForm{})
	must(t, err)
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "58 pixels to the left and 61 above the centre of its frame") || f.Draw.Dims[0] > 9 {
		t.Errorf("in a corner: %v, %q", f.Draw.Dims, f.Notes)
	}
	inverted := make([]float32, 81)
	for i, v := range values {
		inverted[i] = (0.2 - v) / 15.2
	}
	if f, err := photograph.ReadDraw(photograph.Kernel, array(t, []int{9, 9}, inverted...), item.DrawForm{}); err != nil || !strings.Contains(f.Doubt, "a kernel is bright where the light went; is it inverted?") {
		t.Errorf("an inverted array: %+v, %v", f, err)
	}
	if f, err := photograph.ReadDraw(photograph.Kernel, drawn(t, 5, 5, func(int, int) color.NRGBA { return grey(0) }), item.DrawForm{}); err != nil || f.Draw.Data[0] != 0 {
		t.Errorf("a black kernel: %+v, %v", f, err)
	}
}

// TestEvenKernels: the zeros follow an even side, and lie on both sides of a short one.
func TestEvenKernels(t *testing.T) {
	t.Parallel()
	f, err := photograph.ReadDraw(photograph.Kernel, array(t, []int{2, 2}, 0.1, 0.2, 0.3, 0.4), item.DrawForm{})
	must(t, err)
	if want := []float32{0.1, 0.2, 0, 0.3, 0.4, 0, 0, 0, 0}; !slices.Equal(f.Draw.Data, want) || !slices.Equal(f.Draw.Dims, []int{3, 3}) {
		t.Errorf("%v, want %v", f.Draw.Data, want)
	}
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "its sides are 2×2: the centre is element 1, 1 from 0, as in SciPy and OpenCV; for another one pad it with zeros to odd sides, at the right and below for this one") {
		t.Errorf("%q", f.Notes)
	}
	f, err = photograph.ReadDraw(photograph.Kernel, array(t, []int{1, 3}, 0.2, 0.3, 0.5), item.DrawForm{})
	must(t, err)
	if want := []float32{0, 0, 0, 0.2, 0.3, 0.5, 0, 0, 0}; !slices.Equal(f.Draw.Data, want) || len(f.Notes) != 0 {
		t.Errorf("a row: %v, %q", f.Draw.Data, f.Notes)
	}
	for n := 2; n <= 9; n++ { // the centre stays
		values := make([]float32, n*n)
		values[n/2*n+n/2] = 1
		f, err := photograph.ReadDraw(photograph.Kernel, array(t, []int{n, n}, values...), item.DrawForm{})
		must(t, err)
		if k := f.Draw.Dims[0]; k%2 == 0 || f.Draw.Data[k/2*k+k/2] != 1 {
			t.Errorf("side %d: %v %v", n, f.Draw.Dims, f.Draw.Data)
		}
	}
}

// TestWidestHole counts the side of the largest lost square.
func TestWidestHole(t *testing.T) {
	t.Parallel()
	if n := photograph.WidestHole([]float32{0, 0, 1, 0, 0, 1, 1, 0, 0}, 3); n != 2 {
		t.Errorf("%d, want 2", n)
	}
}

// FuzzRead: no file makes the reader panic.
func FuzzRead(f *testing.F) {
	f.Add(drawn(f, 9, 9, func(x, y int) color.NRGBA { return grey(uint8(x * y)) }))
	f.Add(array(f, []int{2, 2}, 1, 0, 0, 1))
	f.Add(zipped(f, map[string][]byte{"mask.npy": array(f, []int{2, 2}, 1, 0, 0, 1)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, h, err := raster.Probe(data); err == nil && w > 1<<16/h {
			return
		}
		for _, name := range []string{photograph.Mask, photograph.Kernel} {
			if d, err := photograph.ReadDraw(name, data, item.DrawForm{}); err == nil && d.Draw == nil {
				t.Fatal("neither a draw nor an error")
			}
		}
	})
}

// TestEvenKernelPadded: a symmetric kernel of even sides, with zeros at the left and above, is said to be shifted; one with zeros at the right and below is not, nor is a path that begins at
// the second row and column.
func TestEvenKernelPadded(t *testing.T) {
	box := func(top, left int) []float32 {
		k := make([]float32, 25)
		for i := range 16 {
			k[(top+i/4)*5+left+i%4] = 1. / 16
		}
		return k
	}
	path := make([]float32, 25)
	for _, at := range []int{6, 7, 12, 13, 19, 23} {
		path[at] = 1. / 6
	}
	for name, c := range map[string]struct {
		kernel []float32
		said   bool
	}{"above": {box(1, 1), true}, "below": {box(0, 0), false}, "path": {path, false}} {
		f, err := photograph.ReadDraw(photograph.Kernel, array(t, []int{5, 5}, c.kernel...), item.DrawForm{})
		must(t, err)
		if said := strings.Contains(strings.Join(f.Notes, ";"), "4×4 below and to the right of zeros; SciPy and OpenCV centre such a kernel"); said != c.said {
			t.Errorf("%s: %q", name, f.Notes)
		}
	}
}
