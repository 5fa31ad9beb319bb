package onnxruntime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// The places of functions in the library's table are those of the header of onnxruntime_go.
func TestInterface(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("binding.go")
	must(t, err)
	enum, _, _ := strings.Cut(string(source), "};")
	places := regexp.MustCompile(`(\w+) = (\d+)`).FindAllStringSubmatch(enum, -1)
	if len(places) < 19 {
		t.Fatalf("places %v", places)
	}
	program := "#include <stddef.h>\n#include \"onnxruntime_c_api.h\"\n"
	for _, p := range places {
		program += fmt.Sprintf("_Static_assert(offsetof(OrtApi, %s) == %s * sizeof(void *), \"\");\n", p[1], p[2])
	}
	program += "_Static_assert(OrtDeviceAllocator == 0 && OrtMemTypeCPUOutput == -1 && OrtMemTypeDefault == 0 && OrtMemoryInfoDeviceType_CPU == 0 && ORT_API_VERSION == 29, \"\");\n"
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	must(t, err)
	file := filepath.Join(t.TempDir(), "places.c")
	must(t, os.WriteFile(file, []byte(program), 0o600))
	if out, err := exec.Command("cc", "-fsyntax-only", "-I", strings.TrimSpace(string(dir)), file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// doubling returns a binding of a session that doubles x, with the value.
func doubling(t *testing.T, rt *onnxruntime.Runtime, n int) (*onnxruntime.Session, *onnxruntime.Binding, onnx.Value) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, n)
	g.Output("y", g.Add(x, x))
	model, err := g.Marshal("doubling")
	must(t, err)
	s, err := rt.NewSession(model, []string{"x"}, []string{"y"})
	must(t, err)
	b, err := s.Bind()
	must(t, err)
	t.Cleanup(func() {
		b.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, b, x
}

// double doubles a number in two tensors of the device that are swapped, and returns what calls copied to the device and back.
func double(t *testing.T, rt *onnxruntime.Runtime, calls, n int) (up, down int64) {
	t.Helper()
	_, b, v := doubling(t, rt, n)
	start, err := b.NewHost(v)
	must(t, err)
	var pair [2]*onnxruntime.Tensor
	for i := range pair {
		pair[i], err = b.NewOutput(0, v)
		must(t, err)
		if (pair[i].F32 == nil) != rt.GPU() {
			t.Fatalf("a tensor in the memory of the device has %d elements on the host", len(pair[i].F32))
		}
	}
	end, err := b.NewHost(v)
	must(t, err)
	for i := range start.F32 {
		start.F32[i] = float32(i)
	}
	up, down = rt.Traffic()
	must(t, b.SetInput(0, start))
	for i := range calls {
		must(t, b.SetOutput(0, pair[i%2]))
		if i == calls-1 {
			must(t, b.SetOutput(0, end))
		}
		runtime.GC()
		must(t, b.Run(t.Context()))
		must(t, b.SetInput(0, pair[i%2]))
	}
	for i, got := range end.F32 {
		if want := float32(int(1)<<calls) * float32(i); got != want {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}
	up2, down2 := rt.Traffic()
	return up2 - up, down2 - down
}

// On the CPU, tensors of the session's allocator are computed in place, and nothing is copied.
func TestBinding(t *testing.T) {
	t.Parallel()
	for _, rt := range []*onnxruntime.Runtime{onnxtest.Runtime(t), onnxtest.Runtime(t).Capturing()} {
		if up, down := double(t, rt, 8, 1000); up != 0 || down != 0 {
			t.Errorf("%d and %d bytes were copied", up, down)
		}
	}
}

// On a GPU, only the first input and the last output are copied, also around a record.
func TestBindingWebGPU(t *testing.T) {
	if up, down := double(t, onnxtest.WebGPU(t), 8, 1000); up != 4000 || down != 4000 {
		t.Errorf("%d and %d bytes were copied, want 4000 of each", up, down)
	}
	const checks = 2 * 2 * 4000 // the output of two calls, in two ways
	if up, down := double(t, onnxtest.WebGPU(t).Capturing(), 8, 1000); up != 4000 || down != 4000+checks {
		t.Errorf("a record: %d and %d bytes were copied, want 4000 and %d", up, down, 4000+checks)
	}
}

// Tensors in Go's memory can be bound; calls without tensors, with closed ones or after the end of the session are errors.
func TestBindingErrors(t *testing.T) {
	t.Parallel()
	s, b, v := doubling(t, onnxtest.Runtime(t), 4)
	x, err := onnxruntime.NewTensor(v.DType, v.Dims...)
	must(t, err)
	y, err := b.NewOutput(0, v)
	must(t, err)
	if err := b.Run(t.Context()); !errors.Is(err, onnxruntime.ErrRuntime) {
		t.Errorf("without tensors: %v", err)
	}
	must(t, b.SetOutput(0, y))
	must(t, b.SetInput(0, x))
	for i := range 3 {
		x.F32[0] = float32(i)
		must(t, b.Run(t.Context()))
		if y.F32[0] != float32(2*i) {
			t.Errorf("2·%d is %v", i, y.F32[0])
		}
	}
	short, err := b.NewHost(onnx.Value{Name: "short", DType: onnx.Float, Dims: []int{3}})
	must(t, err)
	must(t, b.SetInput(0, short))
	if err := b.Run(t.Context()); !errors.Is(err, onnxruntime.ErrRuntime) {
		t.Errorf("a short input: %v", err)
	}
	must(t, x.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if err := b.SetInput(0, x); err == nil {
		t.Error("a closed tensor was bound")
	}
	if _, err := b.NewHost(onnx.Value{Name: "flag", DType: onnx.Bool, Dims: []int{3}}); err == nil {
		t.Error("a tensor of flags was made")
	}
	b.Close()
	if y.F32 != nil {
		t.Error("a closed tensor has elements")
	}
	must(t, s.Close())
	if _, err := s.Bind(); err == nil {
		t.Error("a closed session was bound")
	}
}

// A binding of a closed session does not call the library.
func TestBindingOfClosedSession(t *testing.T) {
	t.Parallel()
	s, b, v := doubling(t, onnxtest.Runtime(t), 4)
	y, err := b.NewOutput(0, v)
	must(t, err)
	must(t, b.SetOutput(0, y))
	must(t, b.SetInput(0, y))
	must(t, s.Close())
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Run: %v", err)
	}
	if _, err := b.NewHost(v); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("NewHost: %v", err)
	}
	if err := b.SetInput(0, y); err != nil && !strings.Contains(err.Error(), "closed") {
		t.Errorf("SetInput: %v", err)
	}
}

// The end of the context terminates a call with bound tensors, also its first one, and the tensors can be used again.
func TestBindingTerminates(t *testing.T) {
	s := endless(t, onnxtest.Runtime(t))
	b, err := s.Bind()
	must(t, err)
	defer b.Close()
	v := onnx.Value{DType: onnx.Float, Dims: []int{2}}
	x, err := b.NewHost(v)
	must(t, err)
	y, err := b.NewOutput(0, v)
	must(t, err)
	must(t, b.SetInput(0, x))
	must(t, b.SetOutput(0, y))
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := b.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run returned %v", err)
		}
		cancel()
	}
	if !slices.Equal(x.Dims(), v.Dims) {
		t.Errorf("dimensions %v", x.Dims())
	}
}
