package onnx_test

import (
	"math"
	"os"
	"testing"

	"ddiff/restore/onnx"
)

// The bundled prior has 35 group normalisations; rewriting them leaves its predictions equal.
func TestFuseGroupNorm(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../prior/bundled/prior.onnx")
	if err != nil {
		t.Fatal(err)
	}
	var answers [][]float32
	const n, size = 2, 32
	for _, fuse := range []bool{false, true} {
		m, err := onnx.ReadModel(data)
		if err != nil {
			t.Fatal(err)
		}
		if fuse {
			fused, got := m.FuseGroupNorm()
			if got != 35 {
				t.Fatalf("%d normalisations were rewritten, want 35", got)
			}
			if again, got := fused.FuseGroupNorm(); got != 0 || again != fused {
				t.Fatalf("%d normalisations were rewritten the second time, want none", got)
			}
			m = fused
		}
		g := onnx.NewGraph(m.Opset())
		x := g.Input("x", onnx.Float, n, 3, size, size)
		out, err := g.Inline(m, map[string]onnx.Value{"x": x, "t": g.Ints(40, 700)}, map[string][]int{"z": x.Dims})
		if err != nil {
			t.Fatal(err)
		}
		g.Output("y", out["z"])
		y := onnx.Value{Name: "y", DType: onnx.Float, Dims: x.Dims}
		answers = append(answers, run(t, g, []onnx.Value{x}, []onnx.Value{y}, random(x.Size(), 5))[0])
	}
	worst := 0.0
	for i, v := range answers[0] {
		worst = max(worst, math.Abs(float64(v-answers[1][i])))
	}
	if !(worst <= 5e-4) {
		t.Errorf("predictions differ by %.2g", worst)
	}
	t.Logf("largest difference %.2g", worst)
}

// A graph without the pattern stays unchanged.
func TestFuseGroupNormLeavesOthers(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", g.Mul(g.Input("x", onnx.Float, 1, 3, 8, 8), g.Scalar(2)))
	data, err := g.Marshal("m")
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.ReadModel(data)
	if err != nil {
		t.Fatal(err)
	}
	if same, got := m.FuseGroupNorm(); got != 0 || same != m {
		t.Errorf("%d normalisations were rewritten, want none", got)
	}
}
