package openvino_test

import (
	"slices"
	"strings"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/install"
	"ddiff/restore/onnx/openvino"
)

// library loads the installed library; the test is skipped without it.
func library(t *testing.T) string {
	t.Helper()
	lib, err := install.LocateOpenVINO("")
	if err != nil {
		t.Skipf("no OpenVINO: %v", err)
	}
	version, err := openvino.Load(lib.Path)
	if err != nil || !strings.HasPrefix(version, "20") {
		t.Fatalf("version %q, %v", version, err)
	}
	return lib.Path
}

// scaled returns a model of y = x·t with an integer factor t.
func scaled(t *testing.T) []byte {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x, factor := g.Input("x", onnx.Float, 2, 3), g.Input("t", onnx.Int64, 1)
	g.Output("y", g.Mul(x, g.Cast(factor, onnx.Float)))
	model, err := g.Marshal("scaled")
	if err != nil {
		t.Fatal(err)
	}
	return model
}

func TestNetwork(t *testing.T) {
	library(t)
	net, err := openvino.Compile(scaled(t), map[string]string{"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	for i := range 3 { // each call with arrays of its own
		x, y := make([]float32, 6), make([]float32, 6)
		var want []float32
		for k := range x {
			x[k] = float32(k)
			want = append(want, float32(k*i))
		}
		err := net.Run([]openvino.Array{
			{Name: "x", Dims: []int{2, 3}, F32: x}, {Name: "t", Dims: []int{1}, I64: []int64{int64(i)}}, {Name: "y", Dims: []int{2, 3}, F32: y},
		})
		if err != nil || !slices.Equal(y, want) {
			t.Errorf("call %d: %v, want %v, error %v", i, y, want, err)
		}
	}
	for name, a := range map[string]openvino.Array{
		"bind x: ": {Name: "x", Dims: []int{3}, F32: make([]float32, 3)}, "bind z: ": {Name: "z", Dims: []int{1}, F32: make([]float32, 1)},
	} {
		if err := net.Run([]openvino.Array{a}); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("a wrong array: %v", err)
		}
	}
}

// Models and settings that the library does not accept are errors with its message.
func TestErrors(t *testing.T) {
	path := library(t)
	if _, err := openvino.Load("/none.so"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a second library: %v", err)
	}
	if _, err := openvino.Compile([]byte("no model"), nil); err == nil {
		t.Error("compiled a file that is no model")
	}
	if _, err := openvino.Compile(scaled(t), map[string]string{"NONE": "1"}); err == nil || !strings.Contains(err.Error(), "NONE") {
		t.Errorf("an unknown property: %v", err)
	}
}
