package onnx_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxtest"
)

// deepModel returns a model of convolutions and SiLU with a skip connection over every fourth layer.
func deepModel(t *testing.T, layers, channels, side int) *modelfile.Model {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	dims := []int{1, channels, side, side}
	h := g.Input("x", onnx.Float, dims...)
	skip := h
	for i := range layers {
		w := onnxtest.Random(channels*channels*9, uint32(i)) //nolint:gosec // small
		for k := range w {
			w[k] *= 0.1
		}
		h = g.Apply("Conv", onnx.Float, dims, map[string]any{"pads": []int{1, 1, 1, 1}}, h, g.Const(w, channels, channels, 3, 3))
		h = g.Mul(h, g.Apply("Sigmoid", onnx.Float, dims, nil, h))
		if i%4 == 3 {
			h = g.Add(h, skip)
			skip = h
		}
	}
	g.Output("y", h)
	return onnxtest.Parse(t, g)
}

// deepGradient evaluates the gradient of a deepModel.
func deepGradient(t *testing.T, layers, channels, side, blocks int) []float32 {
	t.Helper()
	model := deepModel(t, layers, channels, side)
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Recompute(blocks)
	dims := []int{1, channels, side, side}
	x, seed := g.Input("x", onnx.Float, dims...), g.Input("seed", onnx.Float, dims...)
	out, err := g.Inline(model, map[string]onnx.Value{"x": x}, map[string][]int{"y": dims})
	must(t, err)
	dx, err := g.Gradient(out["y"], x, seed)
	must(t, err)
	g.Output("dx", dx)
	return onnxtest.Run(t, g, []onnx.Value{x, seed}, []onnx.Value{{Name: "dx", DType: onnx.Float, Dims: dims}}, onnxtest.Random(x.Size(), 98), onnxtest.Random(x.Size(), 99))[0]
}

// A gradient with blocks equals that without.
func TestRecomputeSameGradient(t *testing.T) {
	t.Parallel()
	want := deepGradient(t, 9, 4, 8, 0)
	for _, blocks := range []int{1, 2, 3, 5, 9, 1000} {
		if got := deepGradient(t, 9, 4, 8, blocks); !near(got, want, 1e-5) {
			t.Errorf("%d blocks: another gradient", blocks)
		}
	}
}

func near(a, b []float32, tolerance float32) bool {
	scale := slices.Max(b) - slices.Min(b)
	for i := range a {
		if d := a[i] - b[i]; !(d <= tolerance*scale && d >= -tolerance*scale) {
			return false
		}
	}
	return true
}

// The backward pass over 24 layers in 5 blocks needs less than 0.7 times the memory of the process. Each is measured in a
// process of its own.
func TestRecomputeMemory(t *testing.T) {
	const variable, mark = "DDIFF_TEST_RECOMPUTE_BLOCKS", "VmHWM:"
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skipf("no /proc to read the memory from: %v", err)
	}
	if blocks := os.Getenv(variable); blocks != "" {
		n, err := strconv.Atoi(blocks)
		must(t, err)
		deepGradient(t, 24, 16, 192, n)
		status, err := os.ReadFile("/proc/self/status")
		must(t, err)
		fmt.Println(string(status))
		return
	}
	peak := func(blocks string) int {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRecomputeMemory$") //nolint:gosec // this test
		c.Env = append(os.Environ(), variable+"="+blocks)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if kib, ok := strings.CutPrefix(line, mark); ok {
				n, err := strconv.Atoi(strings.Fields(kib)[0])
				must(t, err)
				return n
			}
		}
		t.Fatalf("no %s in %s", mark, out)
		return 0
	}
	all, some := peak("0"), peak("5")
	t.Logf("peak of the process: %d MiB, with 5 blocks %d MiB", all>>10, some>>10)
	if some > all*7/10 {
		t.Errorf("peak %d KiB with blocks, %d KiB without", some, all)
	}
}
