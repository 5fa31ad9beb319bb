package main_test

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkHostImage measures the CPU time of a further picture of a campaign beside its steps, see `make bench-host`: the network does next to nothing. The
// time of the process and of the contact sheet, which has 64 pictures, cancels. That of a step with this network is found from runs with more of them.
func BenchmarkHostImage(b *testing.B) {
	const all, some, steps, many = 112, 64, 2, 12
	dir := b.TempDir()
	for i := range all {
		folder := filepath.Join(dir, "all")
		writeShifted(b, i, filepath.Join(folder, fmt.Sprint(i, ".png")))
		if i < some {
			writeShifted(b, i, filepath.Join(dir, "some", fmt.Sprint(i, ".png")))
		}
	}
	prior := filepath.Join(dir, "tiny.onnx")
	writePrior(b, prior, 3, card(3))
	run := func(folder string, steps int) float64 {
		cmd := command(b, "run", filepath.Join(dir, folder), "--size", "256", "--task", "super_resolution", "--steps", fmt.Sprint(steps),
			"--device", "cpu", "--prior", prior, "--out", filepath.Join(b.TempDir(), "out"), "--quiet")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1000
	}
	run("some", steps) // fills the caches
	sum := 0.0
	for b.Loop() {
		whole := run("all", steps)
		step := (run("all", many) - whole) / (all * (many - steps))
		sum += (whole-run("some", steps))/(all-some) - steps*step
	}
	b.ReportMetric(sum/float64(b.N), "image_ms")
}

// writeShifted writes a picture of 256×256 pixels: picture i has a photograph that is shifted cyclically, so that no two are equal.
func writeShifted(b *testing.B, i int, path string) {
	b.Helper()
	photographs, err := filepath.Glob("../../examples/images/*.png")
	must(b, err)
	photograph := photographs[i%len(photographs)]
	in, err := os.Open(photograph)
	must(b, err)
	defer in.Close() // it was read
	src, err := png.Decode(in)
	must(b, err)
	const side = 256
	if size := src.Bounds().Size(); size != image.Pt(side, side) {
		b.Fatalf("%s has %v pixels", photograph, size)
	}
	dst := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			dst.Set(x, y, src.At((x+37*i)%side, (y+29*i)%side))
		}
	}
	var out strings.Builder
	must(b, png.Encode(&out, dst))
	must(b, os.MkdirAll(filepath.Dir(path), 0o755))
	write(b, path, []byte(out.String()))
}
