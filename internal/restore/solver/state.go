package solver

import (
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/restore/method"
)

// Tensor is one named part of a state, of one image.
type Tensor struct {
	Name string
	Data []float32
}

// State is the state of one image between two steps: all that is needed to resume.
type State struct {
	// Step is the number of steps made.
	Step int
	// Tensors are in the order in which the method declares them. The first one becomes the answer.
	Tensors []Tensor
}

// Image returns the first tensor: after the last step it is the answer, or the answer's latent; see [Solver.Answers].
func (s State) Image() []float32 {
	if len(s.Tensors) == 0 {
		return nil
	}
	return s.Tensors[0].Data
}

// Clone returns a deep copy.
func (s State) Clone() State {
	s.Tensors = slices.Clone(s.Tensors)
	for i := range s.Tensors {
		s.Tensors[i].Data = slices.Clone(s.Tensors[i].Data)
	}
	return s
}

// Curve is one value per step.
type Curve struct {
	Name   string
	Values []float64
}

// Curves are the curves of one image, one entry per step made.
type Curves struct {
	Time []int
	// Curves are in the order in which the method declares them.
	Curves []Curve
}

// Clone returns a deep copy.
func (c Curves) Clone() Curves {
	c.Time, c.Curves = slices.Clone(c.Time), slices.Clone(c.Curves)
	for i := range c.Curves {
		c.Curves[i].Values = slices.Clone(c.Curves[i].Values)
	}
	return c
}

// drop removes the last n entries.
func (c *Curves) drop(n int) {
	c.Time = c.Time[:len(c.Time)-n]
	for i := range c.Curves {
		c.Curves[i].Values = c.Curves[i].Values[:len(c.Curves[i].Values)-n]
	}
}

// Curve returns the values of a curve, nil for an unknown name.
func (c Curves) Curve(name string) []float64 {
	for _, v := range c.Curves {
		if v.Name == name {
			return v.Values
		}
	}
	return nil
}

// Start is the state before the first step.
func (s *Solver) Start(key noise.Key) State {
	var st State
	dims := s.run.StateDims(1)
	for i, t := range s.run.Info.State {
		data := make([]float32, infer.Size(dims[i]))
		if t.Noise {
			noise.Normal(data, key, noise.Start, uint32(i), 1)
		}
		st.Tensors = append(st.Tensors, Tensor{t.Name, data})
	}
	return st
}

// Fits reports whether a state and its curves belong to a run of a method, before its last step.
func Fits(run *method.Run, st State, c Curves) bool {
	dims := run.StateDims(1)
	sameTensors := len(st.Tensors) == len(dims)
	for i, t := range st.Tensors[:min(len(st.Tensors), len(dims))] {
		sameTensors = sameTensors && t.Name == run.Info.State[i].Name && len(t.Data) == infer.Size(dims[i])
	}
	sameCurves := st.Step == 0 || slices.EqualFunc(c.Curves, run.Info.Curves, func(v Curve, want method.Curve) bool {
		return v.Name == want.Name && len(v.Values) == st.Step
	})
	return sameTensors && sameCurves && len(c.Time) == st.Step && st.Step >= 0 && st.Step < len(run.Steps)
}
