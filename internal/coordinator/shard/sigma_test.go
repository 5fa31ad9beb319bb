package shard_test

import (
	"context"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// noisyImage is a smooth image with noise.
func noisyImage(height, width int, sigma float64) *raster.Image {
	img := raster.New(3, height, width)
	noise.Normal(img.Pix, noise.NewKey([32]byte{7}), noise.Measurement, 0, sigma)
	for i := range img.Pix {
		img.Pix[i] += 0.5 * float32(math.Sin(float64(i%width)/9)*math.Cos(float64(i/width)/11))
	}
	return img
}

// TestEstimatedSigma: the items of stored measurements have the estimate in the units of y, for pictures, arrays of another range,
// and pictures with a mask, and those without an estimate fail with one line that names the remedy.
func TestEstimatedSigma(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, data []byte, err error) {
		must(t, err)
		must(t, os.WriteFile(at(name), data, 0o644))
	}
	img := noisyImage(64, 72, 0.05)
	file, err := raster.EncodePNG(img)
	put("a.png", file, err)
	grey := raster.New(3, 64, 72)
	for i := range grey.Pix {
		grey.Pix[i] = img.Pix[i%(64*72)] // all channels equal
	}
	file, err = raster.EncodePNG(grey)
	put("grey.png", file, err)
	file, err = raster.EncodeNPY([]int{1, 64, 72}, img.Pix[:64*72])
	put("luma.npy", file, err)
	file, err = raster.EncodePNG(noisyImage(16, 16, 0.05))
	put("small.png", file, err)
	bytes := append([]float32(nil), img.Pix...)
	for i, v := range bytes {
		bytes[i] = (v + 1) * 127.5
	}
	file, err = raster.EncodeNPY([]int{3, 64, 72}, bytes)
	put("bytes.npy", file, err)
	mask := raster.New(3, 64, 72)
	for i := range mask.Pix {
		mask.Pix[i] = 1
		if x, y := i%72, i/72%64; x > 20 && x < 50 && y > 10 && y < 40 {
			mask.Pix[i] = -1
		}
	}
	file, err = raster.EncodePNG(mask)
	put("mask.png", file, err)
	half := raster.New(3, 32, 36) // the same mask
	for i := range half.Pix {
		half.Pix[i] = 1
		if x, y := i%36, i/36%32; x > 9 && x < 25 && y > 4 && y < 20 {
			half.Pix[i] = -1
		}
	}
	file, err = raster.EncodePNG(half)
	put("half.png", file, err)
	narrow := raster.New(3, 16, 16)
	for i := range narrow.Pix {
		narrow.Pix[i] = 1
	}
	file, err = raster.EncodePNG(narrow)
	put("narrow.png", file, err)
	hole := noisyImage(64, 72, 0.05)
	for i, v := range mask.Pix {
		if v < 0 {
			hole.Pix[i] = float32(i%3) - 1
		}
	}
	file, err = raster.EncodePNG(hole)
	put("hole.png", file, err)
	put("damaged.png", file[:len(file)/2], nil)
	for name, c := range map[string]struct {
		row    manifest.Row
		task   string
		spec   func(s *manifest.Spec)
		failed string // a part of the reason
	}{
		"picture": {manifest.Row{Measurement: at("a.png")}, "hdr", nil, ""},
		"array": {manifest.Row{Measurement: at("bytes.npy")}, "denoise", func(s *manifest.Spec) {
			s.Dataset.MeasurementRange = &item.ValueRange{0, 255}
		}, ""},
		"mask":         {manifest.Row{Measurement: at("hole.png"), Overrides: manifest.Overrides{Mask: at("mask.png")}}, "inpaint_box", nil, ""},
		"own mask":     {manifest.Row{Measurement: at("hole.png"), Overrides: manifest.Overrides{Mask: at("mask.png")}}, "inpaint", nil, ""},
		"scaled mask":  {manifest.Row{Measurement: at("hole.png"), Overrides: manifest.Overrides{Mask: at("half.png")}}, "inpaint", nil, ""},
		"narrow mask":  {manifest.Row{Measurement: at("a.png"), Overrides: manifest.Overrides{Mask: at("narrow.png")}}, "inpaint", nil, "give a mask whose sides have the same ratio"},
		"grey":         {manifest.Row{Measurement: at("grey.png")}, "colorize", nil, ""},
		"luma":         {manifest.Row{Measurement: at("luma.npy")}, "colorize", nil, ""},
		"bayer":        {manifest.Row{Measurement: at("luma.npy")}, "demosaic", nil, ""},
		"photons":      {manifest.Row{Measurement: at("a.png"), Overrides: manifest.Overrides{Photons: new(30.0)}}, "hdr", nil, "has photons and sigma auto"},
		"mosaic":       {manifest.Row{Measurement: at("grey.png")}, "demosaic", nil, ""},
		"row":          {manifest.Row{Measurement: at("a.png"), Overrides: manifest.Overrides{Sigma: new(item.SigmaAuto)}}, "hdr", func(s *manifest.Spec) { s.Sigma = 0.3 }, ""},
		"no mask":      {manifest.Row{Measurement: at("hole.png")}, "inpaint_box", nil, "the mask of the measurement is missing; give it, or sigma as a number"},
		"other mask":   {manifest.Row{Measurement: at("small.png"), Overrides: manifest.Overrides{Mask: at("mask.png")}}, "inpaint_box", nil, "the mask has the shape [64 72], the measurement 16×16; give a mask of its size"},
		"damaged":      {manifest.Row{Measurement: at("damaged.png")}, "hdr", nil, "sigma auto: read the measurement: decode picture: "},
		"small":        {manifest.Row{Measurement: at("small.png")}, "hdr", nil, "too few usable patches: 169 of 4×4 pixels"},
		"phase":        {manifest.Row{Measurement: at("a.png")}, "phase_retrieval", nil, "its measurement is no picture"},
		"compressed":   {manifest.Row{Measurement: at("a.png"), Overrides: manifest.Overrides{Task: "jpeg", Sigma: new(item.SigmaAuto)}}, "jpeg", func(s *manifest.Spec) { s.Sigma = 0 }, "task jpeg: the noise of its measurement is not white; give sigma"},
		"simulated":    {manifest.Row{Image: at("a.png")}, "hdr", nil, "sigma auto needs a stored measurement; a simulated one needs a number"},
		"out of range": {manifest.Row{Measurement: at("bytes.npy")}, "denoise", nil, "is out of range, want 0 to 1 (in units of y); give sigma"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := manifest.Default()
			s.Name, s.Dataset.Path, s.Dataset.Size, s.Sigma = "test", "list.csv", 64, item.SigmaAuto
			s.Methods = []string{"ddiff", "diffpir"}
			s.Tasks = []item.Task{{Name: c.task}}
			if c.spec != nil {
				c.spec(s)
			}
			c.row.Name = "x"
			sharder, err := shard.New(shard.Config{
				Spec: s, Prior: bundled(t), Sources: manifest.Files{},
				Rows: func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
					return func(yield func(manifest.Row, error) bool) { yield(c.row, nil) }
				},
			})
			must(t, err)
			w := collect(t, sharder, shard.Position{})[0]
			if c.failed != "" {
				if len(w.Items) != 0 || len(w.Failed) != 2 || !strings.Contains(w.Failed[0].Reason, c.failed) || strings.Contains(w.Failed[0].Reason, "\n") ||
					(name == "damaged" || name == "narrow mask") && strings.Contains(w.Failed[0].Reason, "give sigma") {
					t.Errorf("%d items, failed %+v", len(w.Items), w.Failed)
				}
				return
			}
			if len(w.Items) != 2 {
				t.Fatalf("%d items, failed %+v", len(w.Items), w.Failed)
			}
			for _, it := range w.Items {
				if math.Abs(it.Sigma/0.05-1) > 0.08 || !it.SigmaEstimated || it.Sigma != w.Items[0].Sigma {
					t.Errorf("%s has sigma %g, estimated %v", it.Method, it.Sigma, it.SigmaEstimated)
				}
				if text := item.Sigma(it.Sigma).String(); it.Method == "diffpir" && !strings.Contains(string(it.Solver), `"noise_std":`+text) {
					t.Errorf("the settings %s lack the estimate %s", it.Solver, text)
				}
			}
		})
	}
}
