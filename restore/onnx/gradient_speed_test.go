//go:build unix

package onnx_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// A VQ decoder of 64 channels with its gradient takes at most 2.5 times the decoder's time. PyTorch's autograd runs beside it,
// in turns. Times are of the processor, on one thread, and the least of all rounds: other programs disturb them little.
func TestGradientSpeed(t *testing.T) {
	python := os.Getenv("DDIFF_GRADIENT_SPEED")
	if python == "" {
		t.Skip("times the machine; run it with make gradients-bench")
	}
	const width, side, rounds = 64, 16, 15
	folder := t.TempDir()
	torch := startTorch(t, python, folder, width, side)
	data, err := os.ReadFile(filepath.Join(folder, "decoder.onnx"))
	must(t, err)
	m, err := modelfile.ReadModel(data)
	must(t, err)
	image := []int{1, 3, 4 * side, 4 * side}
	build := func(gradient bool) *evaluation {
		g := onnx.NewGraph(m.Opset())
		z := g.Input("z", onnx.Float, 1, 3, side, side)
		out, err := g.Inline(m, map[string]onnx.Value{"z": z}, map[string][]int{"x": image})
		must(t, err)
		x := onnx.Value{Name: "y", DType: onnx.Float, Dims: image}
		g.Output("y", out["x"])
		if !gradient {
			return newSerialEvaluation(t, g, []onnx.Value{z}, x)
		}
		w := g.Input("w", onnx.Float, image...)
		dz, err := g.Gradient(out["x"], z, w)
		must(t, err)
		g.Output("dz", dz)
		return newSerialEvaluation(t, g, []onnx.Value{z, w}, x, onnx.Value{Name: "dz", DType: onnx.Float, Dims: dz.Dims})
	}
	forward, gradient := build(false), build(true)
	z, w := onnxtest.Random(3*side*side, 1), onnxtest.Random(infer.Size(image), 2)
	passes := []func() float64{
		func() float64 { return milliseconds(t, func() { forward.run(z) }) },
		func() float64 { return milliseconds(t, func() { gradient.run(z, w) }) },
		func() float64 { return torch("forward") },
		func() float64 { return torch("gradient") },
	}
	times := make([][]float64, len(passes))
	for round := range rounds + 2 {
		for i, pass := range passes {
			if ms := pass(); round >= 2 { // the first rounds allocate
				times[i] = append(times[i], ms)
			}
		}
	}
	least := func(i int) float64 { return slices.Min(times[i]) }
	ratio := least(1) / least(0)
	fmt.Printf("forward_ms=%.1f gradient_ms=%.1f ratio=%.2f torch_forward_ms=%.1f torch_gradient_ms=%.1f torch_ratio=%.2f\n",
		least(0), least(1), ratio, least(2), least(3), least(3)/least(2))
	if !(ratio <= 2.5) {
		t.Errorf("decoder and gradient take %.2f times the decoder's time, want 2.5 or less", ratio)
	}
}

// milliseconds returns the processor time of f.
func milliseconds(t *testing.T, f func()) float64 {
	t.Helper()
	used := func() float64 {
		var r syscall.Rusage
		must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
		return 1e3*float64(r.Utime.Sec+r.Stime.Sec) + 1e-3*float64(r.Utime.Usec+r.Stime.Usec)
	}
	begin := used()
	f()
	return used() - begin
}

// startTorch starts tools/gradient_bench.py and returns a function that runs one pass there and returns its milliseconds.
func startTorch(t *testing.T, python, folder string, width, side int) func(pass string) float64 {
	t.Helper()
	c := exec.Command(python, "../../tools/gradient_bench.py", folder, strconv.Itoa(width), strconv.Itoa(side))
	c.Stderr = os.Stderr
	to, err := c.StdinPipe()
	must(t, err)
	from, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() {
		if err := to.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(from)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("gradient_bench.py did not start: %q (%v)", lines.Text(), lines.Err())
	}
	return func(pass string) float64 {
		if _, err := io.WriteString(to, pass+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("gradient_bench.py ended: %v", lines.Err())
		}
		ms, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		must(t, err)
		return ms
	}
}
