package solver

import (
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/method"
)

// Reuse makes the solver one for another run, as New does with the same arguments, if it has the compiled models of that run: numbers of the steps,
// such as step sizes and times, are inputs of the models. Otherwise it returns false and changes nothing. Images in tiles have
// models of their own.
func (s *Solver) Reuse(rt *onnxruntime.Runtime, run *method.Run, n int, build Build) (bool, error) {
	build, err := build.of(rt, run)
	if err != nil || rt != s.rt || n != s.n || build != s.build || s.run.Grid() != nil || run.Grid() != nil ||
		run.Prior != s.run.Prior || run.Info.Name != s.run.Info.Name || run.Operator.Image != s.run.Operator.Image {
		return false, err
	}
	parts := s.streams
	if len(parts) == 0 {
		parts = []*Solver{s}
	}
	for _, part := range parts {
		if m, err := part.model(run); err != nil || m.digest(part.seed) != part.digest {
			return false, err
		}
	}
	s.run = run
	for _, part := range parts {
		part.run = run
	}
	return true, nil
}
