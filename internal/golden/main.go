// Command golden compares the results of two outputs of ddiff run, item by item.
//
//	go run ./internal/golden OLD NEW [OLD NEW ...]
//
// It prints one line for scripts and exits with 1 unless the outputs have the same identities and, for every item, equal bytes in
// measurement.npy, the item of the old result.json in the new one, and results that differ by rounding alone: see tolerance.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// tolerance bounds the effect of rounding on an item. Operators that are not linear enlarge differences from step to step: single pixels
// of the same image may differ a lot.
type tolerance struct {
	levels int     // largest difference of a sample of restored.png, in 1/255
	rms    float64 // root of the mean square difference of its samples, in 1/255
	psnr   float64 // of the PSNR, in dB
	curve  float64 // of a value in trace.json, as a share of the curve's largest
}

func toleranceOf(task string) tolerance {
	switch task {
	case "phase_retrieval", "nonlinear_deblur", "hdr":
		return tolerance{levels: 255, rms: 8, psnr: 0.2, curve: 0.05}
	}
	return tolerance{levels: 1, rms: 0.5, psnr: 0.001, curve: 1e-4}
}

// counts are the numbers of comparisons of one kind.
type counts struct{ all, equal int }

func (c *counts) add(equal bool) {
	c.all++
	if equal {
		c.equal++
	}
}

func main() {
	if len(os.Args) < 3 || len(os.Args)%2 == 0 {
		fmt.Fprintln(os.Stderr, "usage: golden OLD NEW [OLD NEW ...]")
		os.Exit(2)
	}
	var c comparison
	for i := 1; i < len(os.Args); i += 2 {
		if err := c.outputs(os.Args[i], os.Args[i+1]); err != nil {
			fmt.Fprintln(os.Stderr, "golden:", err)
			os.Exit(1)
		}
	}
	fmt.Printf("identities=%d equal=%d measurements=%d equal=%d items=%d equal=%d images=%d same_pixels=%d close=%d curves=%d close=%d\n",
		c.identities.all, c.identities.equal, c.measurements.all, c.measurements.equal, c.items.all, c.items.equal,
		c.images.all, c.samePixels, c.images.equal, c.curves.all, c.curves.equal)
	for _, k := range []counts{c.identities, c.measurements, c.items, c.images, c.curves} {
		if k.all == 0 || k.all != k.equal {
			os.Exit(1)
		}
	}
}

type comparison struct {
	identities, measurements, items, images, curves counts
	samePixels                                      int
}

// outputs compares two directories of results.
func (c *comparison) outputs(older, newer string) error {
	before, err := identities(older)
	if err != nil {
		return err
	}
	after, err := identities(newer)
	if err != nil {
		return err
	}
	for _, id := range after {
		if !slices.Contains(before, id) {
			c.identities.add(false)
		}
	}
	for _, id := range before {
		found := slices.Contains(after, id)
		c.identities.add(found)
		if !found {
			continue
		}
		if err := c.pair(filepath.Join(older, "items", id), filepath.Join(newer, "items", id)); err != nil {
			return err
		}
	}
	return nil
}

// identities lists the items that have a result.
func identities(output string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(output, "items", "*", "result.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no results in %s", output)
	}
	for i, f := range files {
		files[i] = filepath.Base(filepath.Dir(f))
	}
	return files, err
}

// stored is what a directory of an item holds.
type stored struct {
	result struct {
		Item    map[string]any      `json:"item"`
		Metrics map[string]*float64 `json:"metrics"`
	}
	measurement, pixels []byte
	size                image.Point
	curves              map[string][]float64
}

func read(dir string) (s stored, err error) {
	for _, file := range []struct {
		name   string
		decode func([]byte) error
	}{
		{"result.json", func(data []byte) error { return json.Unmarshal(data, &s.result) }},
		{"trace.json", func(data []byte) error { return json.Unmarshal(data, &s.curves) }},
		{"measurement.npy", func(data []byte) error { s.measurement = data; return nil }},
		{"restored.png", func(data []byte) (err error) { s.pixels, s.size, err = pixels(data); return err }},
	} {
		path := filepath.Join(dir, file.name)
		data, err := os.ReadFile(path)
		if err == nil {
			err = file.decode(data)
		}
		if err != nil {
			return s, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return s, nil
}

// pair compares the results of an item.
func (c *comparison) pair(older, newer string) error {
	a, err := read(older)
	if err != nil {
		return err
	}
	b, err := read(newer)
	if err != nil {
		return err
	}
	task, _ := a.result.Item["task"].(string)
	t := toleranceOf(task)
	note := func(k *counts, equal bool, format string, args ...any) {
		k.add(equal)
		if !equal {
			fmt.Fprintf(os.Stderr, "golden: %s, %s and %s: %s\n", task, older, newer, fmt.Sprintf(format, args...))
		}
	}
	note(&c.measurements, bytes.Equal(a.measurement, b.measurement), "measurement.npy differs")
	field := differentField(a.result.Item, b.result.Item)
	note(&c.items, field == "", "field %s of the item differs", field)
	levels, rms := differences(a.pixels, b.pixels)
	if a.size != b.size {
		levels = 256
	}
	if levels == 0 {
		c.samePixels++
	}
	psnr := math.Inf(1)
	if x, y := a.result.Metrics["psnr"], b.result.Metrics["psnr"]; x != nil && y != nil {
		psnr = math.Abs(*x - *y)
	}
	note(&c.images, levels <= t.levels && rms <= t.rms && psnr <= t.psnr, "restored.png differs by up to %d grey levels, by %.2f in the root of their mean square, and %.4f dB",
		levels, rms, psnr)
	curve, share := largestDeviation(a.curves, b.curves)
	note(&c.curves, share <= t.curve, "curve %s differs by %.2g", curve, share)
	return nil
}

// differentField returns a field of the older item that the newer one has not or has with another value, or "". Newer items have more fields. The
// campaign is not part of an identity.
func differentField(older, newer map[string]any) string {
	for k, v := range older {
		if k != "campaign" && !reflect.DeepEqual(v, newer[k]) {
			return k
		}
	}
	return ""
}

// differences returns the largest difference of two images' samples, and the root of their mean square; 256 for images of different sizes.
func differences(a, b []byte) (largest int, rms float64) {
	if len(a) != len(b) || len(a) == 0 {
		return 256, 256
	}
	sum := 0
	for i := range a {
		d := int(a[i]) - int(b[i])
		largest, sum = max(largest, d, -d), sum+d*d
	}
	return largest, math.Sqrt(float64(sum) / float64(len(a)))
}

// largestDeviation returns the curve with the largest deviation, as a share of its largest value. It is infinite for a curve that is missing, and for
// one of another length.
func largestDeviation(a, b map[string][]float64) (curve string, share float64) {
	for name, x := range a {
		y, d, largest := b[name], 0.0, math.SmallestNonzeroFloat64
		if len(x) != len(y) {
			return name, math.Inf(1)
		}
		for i := range x {
			d, largest = max(d, math.Abs(x[i]-y[i])), max(largest, math.Abs(x[i]))
		}
		if d/largest >= share {
			curve, share = name, d/largest
		}
	}
	return curve, share
}

// pixels are the decoded samples of an image, and its size.
func pixels(data []byte) (out []byte, size image.Point, err error) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, size, err
	}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, a := img.At(x, y).RGBA()
			out = append(out, byte(r>>8), byte(g>>8), byte(b>>8), byte(a>>8))
		}
	}
	return out, img.Bounds().Size(), nil
}
