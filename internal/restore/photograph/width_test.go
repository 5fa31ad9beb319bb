package photograph_test

import (
	"bytes"
	"errors"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// blurred is a picture after a kernel, noise of 0.02 and, with a quality below 100, JPEG.
func blurred(t *testing.T, x *raster.Image, k *operator.Draw, quality int) *raster.Image {
	t.Helper()
	y, side := x.Clone(), k.Dims[0]
	mirrored := func(i, n int) int {
		i = max(i, -i)
		return min(i, 2*n-2-i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range y.Pix {
		c, at := i/(x.Height*x.Width), i%(x.Height*x.Width)
		sum := 0.02 * r.NormFloat64()
		for a, w := range k.Data {
			if w != 0 {
				sum += float64(w * x.Plane(c)[mirrored(at/x.Width+a/side-side/2, x.Height)*x.Width+mirrored(at%x.Width+a%side-side/2, x.Width)])
			}
		}
		y.Pix[i] = float32(min(1, max(-1, sum)))
	}
	file, err := raster.EncodePNG(y)
	if err != nil {
		t.Fatal(err)
	}
	if quality < 100 {
		img, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
			t.Fatal(err)
		}
		file = b.Bytes()
	}
	if y, err = raster.Decode(file); err != nil {
		t.Fatal(err)
	}
	return y
}

func gaussian(std float64) *operator.Draw {
	r := int(math.Ceil(3.5 * std))
	d := &operator.Draw{Dims: []int{2*r + 1, 2*r + 1}}
	sum := 0.0
	for i := range (2*r + 1) * (2*r + 1) {
		a, b := float64(i/(2*r+1)-r), float64(i%(2*r+1)-r)
		v := math.Exp(-(a*a + b*b) / (2 * std * std))
		sum += v
		d.Data = append(d.Data, float32(v))
	}
	for i := range d.Data {
		d.Data[i] /= float32(sum)
	}
	return d
}

// TestEstimateWidth: the interval of an estimate has the width of the blur on nearly all photographs, the shape is told apart where it is wide, and sharp photographs look sharp.
func TestEstimateWidth(t *testing.T) {
	t.Parallel()
	kernels := map[photograph.BlurShape]func(float64) *operator.Draw{photograph.Gaussian: gaussian, photograph.Disk: photograph.DrawDisk}
	inside, all, shaped, wide, photos := 0, 0, 0, 0, 0
	for _, path := range photographs(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := raster.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if x.Height > 128 {
			x = cropped(x, 128)
		}
		photos++
		if sharp, err := photograph.EstimateWidth(x, photograph.Gaussian, 100); err == nil && sharp.Low > 0.8 {
			t.Errorf("%s: %+v without a blur", path, sharp)
		}
		for shape, kernel := range kernels {
			for _, width := range []float64{1.5, 3} {
				for _, quality := range []int{100, 90} {
					y := blurred(t, x, kernel(width), quality)
					found, err := photograph.EstimateWidth(y, shape, float64(quality))
					if all++; err == nil && found.Low <= width && width <= found.High {
						inside++
					} else {
						t.Logf("%s, %s, quality %d: %.2f becomes %+v, %v", filepath.Base(path), shape, quality, width, found, err)
					}
					other := photograph.Disk
					if shape == photograph.Disk {
						other = photograph.Gaussian
					}
					if second, err := photograph.EstimateWidth(y, other, float64(quality)); width == 3 && quality == 100 && err == nil {
						if wide++; found.Misfit < second.Misfit {
							shaped++
						}
					}
				}
			}
		}
	}
	t.Logf("photographs=%d inside=%d of %d, shapes=%d of %d", photos, inside, all, shaped, wide)
	if 10*inside < 9*all || 10*shaped < 8*wide {
		t.Error("too few")
	}
}

// photographs are those of the repository, without the eye, whose sharp edge is the border of the picture.
func photographs(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, folder := range []string{"images", "unseen"} {
		some, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", folder, "*.png"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, some...)
	}
	return slices.DeleteFunc(out, func(path string) bool { return filepath.Base(path) == "retina.png" })
}

// cropped is the middle of a picture.
func cropped(x *raster.Image, side int) *raster.Image {
	out := raster.New(x.Channels, side, side)
	top, left := (x.Height-side)/2, (x.Width-side)/2
	for i := range out.Pix {
		c, at := i/(side*side), i%(side*side)
		out.Pix[i] = x.Plane(c)[(top+at/side)*x.Width+left+at%side]
	}
	return out
}

// TestNoWidth: what tells no width is refused.
func TestNoWidth(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]*raster.Image{"flat": raster.New(3, 128, 128), "small": raster.New(3, 40, 200)} {
		if got, err := photograph.EstimateWidth(x, photograph.Gaussian, 100); !errors.Is(err, photograph.ErrNoWidth) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestDrawDisk: the light of a disk is even, and falls on its area.
func TestDrawDisk(t *testing.T) {
	t.Parallel()
	for _, radius := range []float64{0.4, 1, 3.3, 20} {
		d := photograph.DrawDisk(radius)
		sum, side := 0.0, d.Dims[0]
		for i, v := range d.Data {
			sum += float64(v)
			if v != d.Data[len(d.Data)-1-i] {
				t.Fatalf("radius %g: not symmetric", radius)
			}
		}
		middle := float64(d.Data[len(d.Data)/2])
		if side%2 == 0 || math.Abs(sum-1) > 1e-5 || radius >= 1 && math.Abs(middle*math.Pi*radius*radius-1) > 0.02 {
			t.Errorf("radius %g: side %d, sum %g, middle %g", radius, side, sum, middle)
		}
	}
}
