package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/operator"
)

// onWebGPU returns a solver of two small images on WebGPU, whose steps are calls, or records.
func onWebGPU(t *testing.T, steps int, form prior.Form) (*Solver, []Problem) {
	t.Helper()
	gpu := onnxtest.WebGPU(t)
	shape := operator.Shape{Channels: 3, Height: 16, Width: 16}
	op := newOperator(t, operator.SuperResolution, shape)
	p := gaussianPrior(t, 2, shape, slices.Repeat([]float32{0.1}, shape.Size()))
	return compile(t, gpu, newRun(t, p, op, config(t, op.Task, steps)), 2, Build{Form: form}), problems(t, op, 2, 0.05)
}

// copied returns the bytes that f copies to the GPU and back.
func copied(rt *onnxruntime.Runtime, f func()) (up, down int64) {
	up, down = rt.Traffic()
	f()
	up2, down2 := rt.Traffic()
	return up2 - up, down2 - down
}

// A step copies its time, numbers and noise to a GPU, and its curves back. The state is copied once in each direction.
func TestTrafficOfSteps(t *testing.T) {
	type bytes struct{ up, down int64 }
	whole := map[int]bytes{}
	var step, state, y bytes
	for _, steps := range []int{3, 5} {
		s, probs := onWebGPU(t, steps, "")
		up, down := copied(s.rt, func() { solve(t, s, probs) })
		whole[steps] = bytes{up, down}
		numbers := 8 + 4*len(s.run.Row(0))
		for d := range s.run.Info.Draws {
			numbers += 4 * infer.Size(s.run.DrawDims(d, 2))
		}
		step = bytes{int64(numbers), int64(4 * 2 * (len(s.run.Computed()) + 1))}
		state, y = bytes{}, bytes{up: int64(4 * 2 * s.run.Operator.MeasurementSize())}
		for _, dims := range s.run.StateDims(2) {
			state.up += int64(4 * infer.Size(dims))
		}
	}
	for steps, got := range whole {
		want := bytes{state.up + y.up + int64(steps)*step.up, state.up + int64(steps)*step.down}
		if got != want {
			t.Errorf("%d steps copied %+v, want %+v", steps, got, want)
		}
	}
}

// A run on the CPU copies nothing to a device.
func TestNoTrafficOnCPU(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.HDR, small), bundled(t)
	s := newSolver(t, p, op, config(t, op.Task, 2), 1)
	solve(t, s, problems(t, op, 1, 0.05))
	if up, down := s.rt.Traffic(); up != 0 || down != 0 {
		t.Errorf("%d and %d bytes", up, down)
	}
	if s.reader != nil || s.state[0].host != s.state[0].pair[0] {
		t.Error("the CPU has a second copy of the state")
	}
}

// A run on a GPU that is stopped between two steps, or within one, and resumed has the bits of an undisturbed one, also with steps that are records.
func TestWebGPUResumes(t *testing.T) {
	s, probs := onWebGPU(t, 6, "")
	testResumes(t, s, s, probs)
	recorded, _ := onWebGPU(t, 6, prior.Exported.WithGraph())
	testResumes(t, s, recorded, probs)
}

// testResumes compares interrupted runs of a solver with an undisturbed one of another.
func testResumes(t *testing.T, undisturbed, s *Solver, probs []Problem) {
	t.Helper()
	start := func() ([]State, []Curves) {
		return []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}, make([]Curves, 2)
	}
	want, wantCurves := start()
	must(t, undisturbed.Resume(t.Context(), probs, want, wantCurves, nil))
	for name, interrupt := range map[string]func(cancel func()) error{
		"between steps": func(func()) error { return errors.New("stop") },
		"in a step":     func(cancel func()) error { cancel(); return nil },
	} {
		states, curves := start()
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Resume(ctx, probs, states, curves, func(step int) error {
			if step == 3 {
				return interrupt(cancel)
			}
			return nil
		})
		cancel()
		if err == nil || states[0].Step != 3 || len(curves[1].Time) != 3 {
			t.Fatalf("%s: stopped after %d steps: %v", name, states[0].Step, err)
		}
		must(t, s.Resume(t.Context(), probs, states, curves, nil))
		for i := range want {
			for k, tensor := range want[i].Tensors {
				if !slices.Equal(states[i].Tensors[k].Data, tensor.Data) {
					t.Errorf("%s: image %d: %s differs by %v", name, i+1, tensor.Name, maxAbs(states[i].Tensors[k].Data, tensor.Data))
				}
			}
			if !slices.Equal(curves[i].Curve(curves[i].Curves[0].Name), wantCurves[i].Curve(curves[i].Curves[0].Name)) {
				t.Errorf("%s: image %d: other curves", name, i+1)
			}
		}
	}
}

// Without the state of a lost device, states and curves are those at the beginning of the call.
func TestUnreadableState(t *testing.T) {
	s, probs := onWebGPU(t, 4, "")
	states, curves := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}, make([]Curves, 2)
	stop := errors.New("stop")
	err := s.Resume(t.Context(), probs, states, curves, func(step int) error {
		if step < 3 {
			return nil
		}
		must(t, s.reader.session.Close()) // as if the device had gone
		return stop
	})
	if !errors.Is(err, stop) || states[0].Step != 0 || len(curves[0].Time) != 0 || len(curves[0].Curves[0].Values) != 0 {
		t.Errorf("after %d steps with %d entries of the curves: %v", states[0].Step, len(curves[0].Time), err)
	}
	if !slices.Equal(states[0].Image(), s.Start(probs[0].Key).Image()) {
		t.Error("the state has changed")
	}
}

// A state that grows beyond all numbers ends the run, although the host reads no state.
func TestDivergedState(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.HDR, small), bundled(t)
	s := newSolver(t, p, op, config(t, op.Task, 3), 2)
	probs := problems(t, op, 2, 0.05)
	states := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}
	states[1].Tensors[0].Data[7] = float32(math.Inf(1))
	if err := s.Resume(t.Context(), probs, states, nil, nil); !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v", err)
	}
	states[1].Tensors[0].Data[7] = 0
	must(t, s.Resume(t.Context(), probs, states, nil, nil))
}
