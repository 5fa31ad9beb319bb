package onnxruntime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// 16 GiB in a process limited to 3 GiB more is ErrMemory; the runtime stays usable.
func TestRealAllocationFails(t *testing.T) {
	const name = "DDIFF_TEST_ALLOCATION"
	if os.Getenv(name) == "" {
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run=^TestRealAllocationFails$", "-test.v")
		cmd.Env = append(os.Environ(), name+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	rt := onnxtest.Runtime(t)
	limitMemory(t, 3<<30)
	if _, err := expand(t, rt, 1<<30); !errors.Is(err, onnxruntime.ErrMemory) || !errors.Is(err, onnxruntime.ErrRuntime) {
		t.Errorf("error %v, want ErrMemory", err)
	}
	if got, err := expand(t, rt, 1<<10); err != nil || got != 4<<10 {
		t.Errorf("afterwards: sum %g, error %v; want %d", got, err, 4<<10)
	}
}

// Activations of 256 TiB, more than an address space has, are ErrMemory when OpenVINO compiles the network, and no fault of the network.
func TestOpenVINOAllocationFails(t *testing.T) {
	rt := onnxtest.OpenVINO(t)
	g := onnx.NewGraph(onnx.DefaultOpset)
	const side, channels = 1 << 13, 1 << 20
	x, w := g.Input("x", onnx.Float, 1, 1, side, side), make([]float32, channels)
	wide := g.Apply("Conv", onnx.Float, []int{1, channels, side, side}, nil, x, g.Const(w, channels, 1, 1, 1))
	g.Output("y", g.Apply("Conv", onnx.Float, x.Dims, nil, wide, g.Const(w, 1, channels, 1, 1)))
	model, err := g.Marshal("wide")
	must(t, err)
	_, err = rt.NewNetworkSession(model, []string{"x"}, []string{"y"}, onnxruntime.FP32)
	if !errors.Is(err, onnxruntime.ErrMemory) || !errors.Is(err, onnxruntime.ErrRuntime) || errors.Is(err, onnxruntime.ErrFallback) {
		t.Errorf("error %v, want ErrMemory", err)
	}
}

// limitMemory limits the address space of the process to its present size and more bytes.
func limitMemory(t *testing.T, more uint64) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("the size of the process is not known: %v", err)
	}
	pages, err := strconv.ParseUint(strings.Fields(string(data))[0], 10, 64)
	must(t, err)
	limit := pages*uint64(os.Getpagesize()) + more
	must(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}))
}

// expand sums a tensor of 4·n ones.
func expand(t *testing.T, rt *onnxruntime.Runtime, n int) (float32, error) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 1, 1)
	wide := g.Expand(x, 4, n)
	g.Output("y", g.Reshape(g.ReduceSum(g.Mul(wide, wide), 0, 1), 1))
	model, err := g.Marshal(fmt.Sprintf("expand%d", n))
	must(t, err)
	s, err := rt.NewSession(model, []string{"x"}, []string{"y"})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	tensors, err := onnxruntime.NewTensors(x, onnx.Value{Name: "y", DType: onnx.Float, Dims: []int{1}})
	must(t, err)
	defer onnxruntime.CloseTensors(tensors)
	tensors[0].F32[0] = 1
	err = s.Run(context.Background(), tensors[:1], tensors[1:])
	return tensors[1].F32[0], err
}
