package operator_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

func decodeFile(t *testing.T, path string) *raster.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	img, err := raster.Decode(data)
	must(t, err)
	return img
}

func jpegOperator(t *testing.T, shape operator.Shape, quality, subsampling int) *operator.Operator {
	t.Helper()
	op := operator.Build(t, operator.JPEG, map[string]float64{"quality": float64(quality), "subsampling": float64(subsampling)}, shape)
	return op
}

// compress is A(x) of an image.
func compress(t *testing.T, x *raster.Image, quality, subsampling int) []float32 {
	t.Helper()
	f, err := operator.NewForward(onnxtest.Runtime(t), jpegOperator(t, operator.Shape{Channels: x.Channels, Height: x.Height, Width: x.Width}, quality, subsampling))
	must(t, err)
	defer f.Close()
	y, err := f.Apply(t.Context(), x.Pix, nil)
	must(t, err)
	return y
}

// rmsLevels returns the root mean square difference in levels of 255.
func rmsLevels(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := 127.5 * (float64(a[i]) - float64(b[i]))
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

// TestJPEGAgainstLibjpeg compares A(x) with files that libjpeg wrote, see tools/jpeg_vectors.py: as this program decodes them, and as
// libjpeg does. libjpeg interpolates chroma samples, where they are repeated here, and its inverse DCT is more accurate than that of Go. The root mean
// square difference is below 1.1 levels of 255, without subsampling and as libjpeg decodes below 0.1 at quality 10.
func TestJPEGAgainstLibjpeg(t *testing.T) {
	t.Parallel()
	for _, picture := range []string{"astronaut", "coffee"} {
		x := decodeFile(t, fmt.Sprintf("testdata/jpeg/%s.png", picture))
		for _, c := range []struct {
			quality, subsampling int
			decoded, libjpeg     float64
		}{
			{1, 2, 0.6, 2.5}, {10, 2, 0.6, 2}, {10, 0, 0.6, 0.1}, {10, 1, 0.6, 1.7}, {30, 2, 0.8, 2.3}, {40, 2, 1.1, 2.5}, {60, 1, 1.1, 2.5}, {75, 2, 1, 2.6},
			{95, 0, 1, 0.8}, {100, 0, 1, 0.8},
		} {
			name := fmt.Sprintf("testdata/jpeg/%s_%d_%d", picture, c.quality, c.subsampling)
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				y := compress(t, x, c.quality, c.subsampling)
				if d := rmsLevels(y, decodeFile(t, name+".jpg").Pix); !(d <= c.decoded) {
					t.Errorf("%.2f levels from the decoded file, want at most %g", d, c.decoded)
				}
				if d := rmsLevels(y, decodeFile(t, name+".png").Pix); !(d <= c.libjpeg) {
					t.Errorf("%.2f levels from libjpeg, want at most %g", d, c.libjpeg)
				}
			})
		}
	}
}

// TestJPEGAgainstGo compares A(x) with files of Go's encoder, in colour and for an image of one channel, on a smooth picture with saturated parts. The sides are
// even and some are no multiples of 8: incomplete blocks are completed with copies. A coefficient between two multiples can fall to either side in
// one of the two, whose transforms differ in the last bits: the median counts.
func TestJPEGAgainstGo(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{64, 48}, {58, 42}, {8, 8}, {10, 66}} {
		rect := image.Rectangle{Max: size}
		colour, grey := image.NewRGBA(rect), image.NewGray(rect)
		for y := range size.Y {
			for x := range size.X {
				level := func(phase float64) uint8 {
					return uint8(min(max(128+170*math.Sin(float64(x)/9+phase)*math.Cos(float64(y)/7), 0), 255))
				}
				colour.Set(x, y, color.RGBA{level(0), level(0.3), level(0.9), 255})
				grey.Set(x, y, color.Gray{level(0.5)})
			}
		}
		for _, quality := range []int{1, 10, 50, 90, 100} {
			for _, source := range []image.Image{colour, grey} {
				var file bytes.Buffer
				must(t, jpeg.Encode(&file, source, &jpeg.Options{Quality: quality}))
				want, err := raster.Decode(file.Bytes())
				must(t, err)
				x, n := raster.New(3, size.Y, size.X), size.X*size.Y
				for i := range n {
					r, g, b, _ := source.At(i%size.X, i/size.X).RGBA()
					for c, v := range []uint32{r, g, b} {
						x.Pix[c*n+i] = float32(v)/32767.5 - 1
					}
				}
				if source == image.Image(grey) {
					x, want = &raster.Image{Channels: 1, Height: size.Y, Width: size.X, Pix: x.Plane(0)}, &raster.Image{Pix: want.Plane(0)}
				}
				y := compress(t, x, quality, 2)
				differences := make([]float64, len(y))
				for i, v := range y {
					differences[i] = 127.5 * math.Abs(float64(v-want.Pix[i]))
				}
				slices.Sort(differences)
				d, median := rmsLevels(y, want.Pix), differences[len(y)/2]
				if !(d <= 3.5) || !(median <= 1.01) {
					t.Errorf("%v, quality %d, %d channels: rms %.2f, median %.2f levels", size, quality, x.Channels, d, median)
				}
			}
		}
	}
}

// A(A(x)) = A(x) up to the rounding of samples, and the gradient of ‖y − A(x)‖ at such an x is zero: every coefficient lies in the cell of y.
// Elsewhere it is the residual itself with chroma averaged over its samples.
func TestJPEGGradient(t *testing.T) {
	t.Parallel()
	x := decodeFile(t, "testdata/jpeg/astronaut.png")
	shape := operator.Shape{Channels: 3, Height: x.Height, Width: x.Width}
	for _, subsampling := range []int{0, 1, 2} {
		op := jpegOperator(t, shape, 10, subsampling)
		y := compress(t, x, 10, subsampling)
		again, _, grad := evaluate(t, op, 1, x.Pix, y, y, nil)
		if d := rmsLevels(again, y); d != 0 {
			t.Errorf("subsampling %d: A(x) in a batch differs by %.2g", subsampling, d)
		}
		if g := dot(grad, grad); !(g <= 1e-12) {
			t.Errorf("subsampling %d: gradient %.2g at an x whose coefficients lie in the cells of y", subsampling, g)
		}
		if d := rmsLevels(compress(t, &raster.Image{Channels: 3, Height: x.Height, Width: x.Width, Pix: y}, 10, subsampling), y); !(d <= 2) {
			t.Errorf("subsampling %d: A(A(x)) differs from A(x) by %.2g levels", subsampling, d)
		}
		seed := normal(len(y), 4, 1)
		_, vjp, _ := evaluate(t, op, 1, x.Pix, seed, y, nil)
		want := slices.Clone(seed)
		if subsampling == 0 && relative(vjp, want) > 1e-5 {
			t.Errorf("the gradient of the residual differs from it by %.2g", relative(vjp, want))
		}
		// Luma of a seed that is grey everywhere is not averaged.
		n := len(seed) / 3
		copy(seed[n:], seed[:n])
		copy(seed[2*n:], seed[:n])
		_, vjp, _ = evaluate(t, op, 1, x.Pix, seed, y, nil)
		if !(math.Abs(dot(vjp, seed)/dot(seed, seed)-1) <= 0.25) {
			t.Errorf("subsampling %d: a grey residual and its gradient have the product %.2g", subsampling, dot(vjp, seed)/dot(seed, seed))
		}
	}
}

// A level that lies between two multiples is rounded away from zero, as libjpeg does: flat blocks at quality 50 have coefficients of halves.
func TestJPEGTies(t *testing.T) {
	t.Parallel()
	for level := range 256 {
		x := raster.New(1, 8, 8)
		for i := range x.Pix {
			x.Pix[i] = float32(level)/127.5 - 1
		}
		// DC = 8·(level − 128), step 16.
		about := float64(level - 128)
		want := min(max(2*math.Copysign(math.Floor(math.Abs(about)/2+0.5), about)+128, 0), 255)
		for _, v := range compress(t, x, 50, 2) {
			if got := (float64(v) + 1) * 127.5; math.Abs(got-want) > 1e-3 {
				t.Fatalf("level %d becomes %g, want %g", level, got, want)
			}
		}
	}
}

// The parameters of a file of libjpeg are its quality and subsampling; a quality of each number is found again.
func TestStatedByJPEG(t *testing.T) {
	t.Parallel()
	read := operator.Builtin().Known(operator.JPEG).Stated
	files, err := filepath.Glob("testdata/jpeg/*.jpg")
	if err != nil || len(files) != 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		got, err := read(data)
		if text := fmt.Sprintf("_%g_%g.jpg", got.Params["quality"], got.Params["subsampling"]); err != nil || got.Inexact != "" || !strings.HasSuffix(file, text) {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
	for quality := 1; quality <= 100; quality++ {
		var colour, grey bytes.Buffer
		for buf, img := range map[*bytes.Buffer]image.Image{&colour: image.NewRGBA(image.Rect(0, 0, 8, 8)), &grey: image.NewGray(image.Rect(0, 0, 8, 8))} {
			must(t, jpeg.Encode(buf, img, &jpeg.Options{Quality: quality}))
			got, err := read(buf.Bytes())
			if err != nil || got.Inexact != "" || got.Params["quality"] != float64(quality) {
				t.Errorf("quality %d: %+v, %v", quality, got, err)
			}
		}
	}
	if got, err := read([]byte("\x89PNG\r\n\x1a\n")); err != nil || got.Params != nil {
		t.Errorf("PNG: %+v, %v", got, err)
	}
	if operator.Builtin().Known(operator.HDR).Stated != nil || operator.Builtin().Known("x").Stated != nil {
		t.Error("another task reads parameters from files")
	}
}
