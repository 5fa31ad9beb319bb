package openvino_test

import (
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/openvino"
	"ddiff/restore/onnx"
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

// ports are those of scaled.
var ports = []string{"x", "t", "y"}

func TestNetwork(t *testing.T) {
	library(t)
	net, err := openvino.Compile(scaled(t), ports, map[string]string{"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	arrays := func(factor int) []openvino.Array {
		x := make([]float32, 6)
		for k := range x {
			x[k] = float32(k)
		}
		return []openvino.Array{{Dims: []int{2, 3}, F32: x}, {Dims: []int{1}, I64: []int64{int64(factor)}}, {Dims: []int{2, 3}, F32: make([]float32, 6)}}
	}
	for i := range 3 { // each call with arrays of its own
		a := arrays(i)
		var want []float32
		for k := range 6 {
			want = append(want, float32(k*i))
		}
		if err := net.Run(a); err != nil || !slices.Equal(a[2].F32, want) {
			t.Errorf("call %d: %v, want %v, error %v", i, a[2].F32, want, err)
		}
	}
	// The library would access memory outside of the slices, or of an earlier call.
	for name, change := range map[string]func(a []openvino.Array) []openvino.Array{
		"2 arrays for 3 ": func(a []openvino.Array) []openvino.Array { return a[:2] },
		"4 arrays for 3 ": func(a []openvino.Array) []openvino.Array { return append(a, a[0]) },
		"bind x: 5 float": func(a []openvino.Array) []openvino.Array { a[0].F32 = a[0].F32[:5]; return a },
		"bind t: 0 float": func(a []openvino.Array) []openvino.Array { a[1].I64 = nil; return a },
		"bind x: Except":  func(a []openvino.Array) []openvino.Array { a[0].Dims = []int{3, 2}; return a },
	} {
		if err := net.Run(change(arrays(1))); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	net.Close()
	if err := net.Run(arrays(1)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
}

// Models and settings that the library does not accept are errors with its message.
func TestErrors(t *testing.T) {
	path := library(t)
	if _, err := openvino.Load("/none.so"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a second library: %v", err)
	}
	if _, err := openvino.Compile([]byte("no model"), ports, nil); err == nil {
		t.Error("compiled a file that is no model")
	}
	if _, err := openvino.Compile(nil, ports, nil); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty model: %v", err)
	}
	if _, err := openvino.Compile(scaled(t), ports, map[string]string{"NONE": "1"}); err == nil || !strings.Contains(err.Error(), "NONE") {
		t.Errorf("an unknown property: %v", err)
	}
}
