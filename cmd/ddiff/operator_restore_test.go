package main_test

import (
	"bytes"
	"fmt"
	"image/png"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

// writeOperator writes an operator for images of one size. It has a parameter gain, by which build may multiply.
func writeOperator(t *testing.T, path string, channels, side int, build func(g *onnx.Graph, x, gain onnx.Value) onnx.Value) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", build(g, g.Input("x", onnx.Float, 1, channels, side, side), g.Input("gain", onnx.Float)))
	data, err := g.Marshal("own")
	must(t, err)
	write(t, path, onnxtest.WithMetadata(t, data, map[string]string{"ddiff.params.gain": "1; (0, 4]; gain of the sensor"}))
}

// The operators of the tests: half of the columns, one channel, five channels, and 48 sums.
func halfOf(g *onnx.Graph, x, gain onnx.Value) onnx.Value {
	return g.Mul(g.Slice(x, 3, 0, x.Dims[3]/2), gain)
}

func greyOf(g *onnx.Graph, x, gain onnx.Value) onnx.Value { return g.Mul(g.Slice(x, 1, 1, 2), gain) }

func fiveOf(g *onnx.Graph, x, gain onnx.Value) onnx.Value {
	return g.Mul(g.Concat(1, x, g.Slice(x, 1, 0, 2)), gain)
}

func sumsOf(g *onnx.Graph, x, gain onnx.Value) onnx.Value {
	n := x.Dims[1] * x.Dims[2]
	return g.Mul(g.Reshape(g.ReduceSum(g.Reshape(x, 1, n, x.Dims[3]), 2), 1, n), gain)
}

// TestRestoreOperatorFile restores pictures and arrays with operators from files. A repeated call does nothing; another file under
// the same name is another restoration.
func TestRestoreOperatorFile(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	own, small := filepath.Join(dir, "half.onnx"), filepath.Join(dir, "small.png")
	writeOperator(t, own, 3, 32, halfOf)
	img := raster.New(3, 30, 15)
	for i := range img.Pix {
		img.Pix[i] = float32(i%15)/15 - 0.5
	}
	data, err := raster.EncodePNG(img)
	must(t, err)
	write(t, small, data)
	args := []string{"restore", small, "--operator", own, "--param", "gain=0.5", "--steps", "3", "--threads", "1"}
	e := ddiff(t, append(args, "--results", filepath.Join(dir, "out"))...)
	wantCode(t, e, 0)
	wantMessage(t, e, "mirrored from 30×30 to 32×32 restored pixels")
	target := filepath.Join(dir, "small.restored.png")
	p, err := passport.Read(read(t, target))
	must(t, err)
	if o := p.Item.Operator; o == nil || o.SHA256 != regular.SHA256(read(t, own)) || p.Item.Params["gain"] != 0.5 || p.Item.Task != "half" {
		t.Errorf("the passport has %+v", p.Item)
	}
	config, err := png.DecodeConfig(bytes.NewReader(read(t, target)))
	if err != nil || config.Width != 30 || config.Height != 30 {
		t.Errorf("the restored picture has %d×%d pixels, %v", config.Width, config.Height, err)
	}
	wantCode(t, ddiff(t, "verify", target), 0)
	wantLine(t, ddiff(t, "replay", target, "--threads", "1"), "replay=bit-equal")
	wantLine(t, ddiff(t, args...), "done=0 failed=0 dead=0 skipped=1 warned=1")
	writeOperator(t, own, 3, 32, func(g *onnx.Graph, x, gain onnx.Value) onnx.Value { return g.Mul(halfOf(g, x, gain), g.Scalar(0.5)) })
	e = ddiff(t, args...)
	wantCode(t, e, 3)
	wantMessage(t, e, "exists and is not its restoration with these settings")
	e = ddiff(t, "replay", target, "--threads", "1")
	wantCode(t, e, 7)
	wantMessage(t, e, "want the file with the SHA-256")
}

// TestRestoreOperatorShapes restores measurements of all shapes that operators have, as pictures where they are pictures, and refuses
// the others with one line.
func TestRestoreOperatorShapes(t *testing.T) {
	skipLong(t)
	t.Parallel()
	for name, c := range map[string]struct {
		build func(g *onnx.Graph, x, gain onnx.Value) onnx.Value
		y     []int // shape of the measurement
		good  []string
		bad   map[string]string // messages by file
	}{
		"grey": {greyOf, []int{1, 16, 16}, []string{"grey.png", "y.npy", "flat.npy"}, map[string]string{
			"colour.png": "it is a colour picture, the task needs a grey one", "large.png": "for images of 16×16 pixels with measurements of shape [1 16 16], got a picture of 64×64 pixels",
		}},
		"five": {fiveOf, []int{5, 16, 16}, []string{"y.npy"}, map[string]string{"grey.png": "is [1, 5, 16, 16], a picture has 1 or 3 channels; give the values of A(x) as .npy"}},
		"sums": {sumsOf, []int{48}, []string{"y.npy"}, map[string]string{
			"grey.png": "is [1, 48], a picture has 1 or 3 channels", "three.npy": "with measurements of shape [48], got a measurement of shape [3 16 16]",
		}},
	} {
		dir := t.TempDir()
		own := filepath.Join(dir, name+".onnx")
		writeOperator(t, own, 3, 16, c.build)
		wantLine(t, ddiff(t, "operator", "check", own), "parameter gain=1, (0, 4]: gain of the sensor")
		write(t, filepath.Join(dir, "y.npy"), array(t, -1, 1, c.y...))
		write(t, filepath.Join(dir, "flat.npy"), array(t, -1, 1, c.y[len(c.y)/2:]...))
		write(t, filepath.Join(dir, "three.npy"), array(t, -1, 1, 3, 16, 16))
		write(t, filepath.Join(dir, "grey.png"), blackPNG(t))
		write(t, filepath.Join(dir, "large.png"), grey(64))
		colour, err := raster.EncodePNG(&raster.Image{Channels: 3, Height: 16, Width: 16, Pix: slices.Concat(repeated(-1, 512), repeated(1, 256))})
		must(t, err)
		write(t, filepath.Join(dir, "colour.png"), colour)
		args := []string{"restore", "--operator", own, "--steps", "3", "--threads", "1", "--out", filepath.Join(dir, "restored")}
		c.good = append(c.good, slices.Sorted(maps.Keys(c.bad))...)
		for _, file := range c.good {
			args = append(args, filepath.Join(dir, file))
		}
		e := ddiff(t, args...)
		wantCode(t, e, 3)
		wantLine(t, e, fmt.Sprintf("done=%d failed=%d dead=0 skipped=0 warned=", len(c.good)-len(c.bad), len(c.bad)))
		for file, text := range c.bad {
			wantMessage(t, e, "failed: ", file, text)
		}
	}
}

// TestOperatorOfOtherChannels: a file that the prior does not suit ends the run before any item.
func TestOperatorOfOtherChannels(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "one.onnx")
	writeOperator(t, own, 1, 16, func(g *onnx.Graph, x, gain onnx.Value) onnx.Value { return g.Mul(x, gain) })
	e := ddiff(t, "run", "--images", photograph("coffee"), "--operator", own, "--size", "16", "--out", t.TempDir())
	wantCode(t, e, 7)
	wantMessage(t, e, own, "its images x have 1 channels, those of the prior 3")
}

// TestOperatorCheckSize: files for images of one size are run on that size.
func TestOperatorCheckSize(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "half.onnx")
	writeOperator(t, own, 3, 40, halfOf)
	e := ddiff(t, "operator", "check", own)
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "half.onnx: operator half, image [1 3 40 40], output [1 3 40 20]") {
		t.Error(e.stdout)
	}
	wantCode(t, ddiff(t, "operator", "check", own, "--size", "40"), 0)
	e = ddiff(t, "operator", "check", own, "--size", "48")
	wantCode(t, e, 7)
	wantMessage(t, e, "it is for images of 40×40 pixels, and the size is 48; leave out --size")
}
