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
	"strings"
	"testing"

	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

func decodeFile(t *testing.T, path string) *raster.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := raster.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// compress is A(x) of an image.
func compress(t *testing.T, x *raster.Image, quality, subsampling float64) []float32 {
	t.Helper()
	op, err := operator.Builtin().New(operator.JPEG, map[string]float64{"quality": quality, "subsampling": subsampling},
		operator.Shape{Channels: x.Channels, Height: x.Height, Width: x.Width})
	if err != nil {
		t.Fatal(err)
	}
	f, err := operator.NewForward(onnxtest.Runtime(t), op)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	y, err := f.Apply(t.Context(), x.Pix, nil)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// levels returns the root mean square and the largest difference of two images, in levels of 255.
func levels(a, b []float32) (rms, largest float64) {
	for i := range a {
		d := 127.5 * math.Abs(float64(a[i])-float64(b[i]))
		rms += d * d
		largest = max(largest, d)
	}
	return math.Sqrt(rms / float64(len(a))), largest
}

// TestJPEGAgainstLibjpeg compares the graph with files of libjpeg, see tools/jpeg_vectors.py: decoded as this program decodes
// pictures, and as libjpeg decodes them, which interpolates chroma.
func TestJPEGAgainstLibjpeg(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/jpeg/*.jpg")
	if err != nil || len(files) != 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jpg")
		if strings.HasSuffix(name, "grey") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			picture, kind, _ := strings.Cut(name, "_")
			var quality, subsampling int
			if n, err := fmt.Sscanf(strings.Replace(kind, "progressive", "2", 1), "%d_%d", &quality, &subsampling); n != 2 {
				t.Fatal(err)
			}
			x := decodeFile(t, filepath.Join("testdata/jpeg", picture+".png"))
			y := compress(t, x, float64(quality), float64(subsampling))
			rms, largest := levels(y, decodeFile(t, file).Pix)
			t.Logf("%s: rms %.2f, largest %.1f levels", name, rms, largest)
			if strings.HasSuffix(name, "progressive") {
				return
			}
			ref := decodeFile(t, strings.TrimSuffix(file, "jpg")+"png")
			rms, largest = levels(y, ref.Pix)
			t.Logf("%s: libjpeg: rms %.2f, largest %.1f levels", name, rms, largest)
		})
	}
	_, _, _, _ = bytes.NewBuffer, image.Rect, color.Gray{}, jpeg.Encode
}
