package method

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// Schedule is the noise of a prior's training by time: its Levels are those that a [Method] may plan with, see [Levels].
type Schedule = prior.Schedule

// Method is a restoration algorithm. Its values are immutable: several solvers use one value.
type Method interface {
	// Info declares the method, but for its name. It returns the same declaration at each call.
	Info() Info
	// Plan lays out the steps of a run. The settings are complete and valid.
	Plan(s Settings, schedule Schedule, image operator.Shape) ([]Step, error)
	// Step builds one step: the next state and the curves. An operation of the Builder that fails ends it.
	Step(b *Builder, s Settings) Next
}

// Info declares a method.
type Info struct {
	// Name is that of [Named].
	Name string
	// About is one line of documentation, Citation the publication.
	About, Citation string
	// Parameters are in the order in which settings are written. "method" and "steps" are reserved names.
	Parameters parameter.List
	// Required names the parameters whose default suits no task: the preset's row or the request states them.
	Required []string
	// NoiseStd names the parameter whose default is the standard deviation of the measurement noise, where it is known.
	NoiseStd string
	// Samples: the answer is a sample of the posterior, not an estimate of the image.
	Samples bool
	// Refuses returns the reason why the method cannot restore measurements of a task, "" if it can. A campaign with the method and the
	// task is refused. nil: it can restore all.
	Refuses func(task operator.Definition) string
	// Latent: the method needs a prior that works on latents. The other methods need a prior that works on pixels.
	Latent bool
	// Undivided is what keeps other sessions than that of a step from computing the network, as providers that compute only the network
	// and images in tiles need: the step differentiates it, or evaluates it in a loop. It follows the name of the method in messages.
	// Empty: nothing.
	Undivided string
	// Differentiates reports whether settings need the gradient of a latent prior's decoder. nil: none do.
	Differentiates func(s Settings) bool
	// PerStep names the parameter whose value is the number of network evaluations of a step. Empty: a step makes one. [Mirror] may
	// multiply it. Evaluations of single steps, as of the optimising steps of resample, are not declared; [Run.Cost] has them.
	PerStep string
	// Steps is the default number of steps.
	Steps int
	// MaxSteps is the largest number of steps. 0: the length of the prior's schedule.
	MaxSteps int
	// Rows are the presets, see [Info.Row]. A task without a row has the defaults.
	Rows []Row
	// State lists the tensors that pass from step to step. The first one has the shape of the prior's space: its value
	// after the last step is the answer, which the solver decodes if the space is latent.
	State []Tensor
	// Draws are the independent noise tensors of a step. A draw's position is part of the key of its numbers: append new
	// draws, do not reorder them.
	Draws []Draw
	// Curves lists the per-step values of each image, in the order in which traces are written.
	Curves []Curve
}

// Evaluations returns the number of network evaluations that settings make for one image.
func (i Info) Evaluations(s Settings) int { return s.Steps * i.StepEvaluations(s) }

// StepEvaluations returns the number of network evaluations in a step, as declared.
func (i Info) StepEvaluations(s Settings) int {
	n := 1
	if i.PerStep != "" {
		n = int(s.Number(i.PerStep))
	}
	if s.Word(mirrorName) == mirrorAverage {
		n *= mirrorWays
	}
	return n
}

// startOfState is the planned factor of the state x in the input of a step whose run may begin with an image made from y.
const startOfState = "start_of_x"

// Random reports whether two runs of a measurement differ: the first step of their plan takes up a state that begins as noise, or a step draws noise.
func (i Info) Random(steps []Step) bool {
	taken, planned := steps[0].Scalars[startOfState]
	return (!planned || taken != 0) && slices.ContainsFunc(i.State, func(t Tensor) bool { return t.Noise }) ||
		slices.ContainsFunc(steps, func(st Step) bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(st.Std)), func(std float64) bool { return std > 0 })
		})
}

// Suits returns an error unless the method works in the space of the prior with this card: its latents,
// or pixels.
func (i Info) Suits(c *prior.Card) error {
	switch {
	case i.Latent && c.Latent == nil:
		return fmt.Errorf("method %s needs a latent prior, but %s works on pixels; set prior to the folder of a bundle", i.Name, c.Name)
	case !i.Latent && c.Latent != nil:
		return fmt.Errorf("method %s works on pixels, but the prior %s on latents; use latent_ddiff", i.Name, c.Name)
	}
	return nil
}

// Admits returns an error that wraps ErrSetting if settings need the gradient of a decoder that has none.
func (i Info) Admits(s Settings, c *prior.Card) error {
	if i.Differentiates == nil || !i.Differentiates(s) || c.Latent == nil || c.Latent.NoGradient == "" {
		return nil
	}
	return fmt.Errorf("%w mode: %s differentiates the decoder of the prior %s, which has no gradient (%s); use latent_ddiff with mode pixel_dc",
		ErrSetting, i.Name, c.Name, c.Latent.NoGradient)
}

// Tensor is one part of the state.
type Tensor struct {
	Name string
	// Pixels reports whether the tensor has the shape of the images with some settings. It has the shape of the
	// prior's space otherwise, and if Pixels is nil.
	Pixels func(s Settings) bool
	// Noise: the tensor starts as N(0, I) from the key of the run. It starts as zeros otherwise.
	Noise bool
}

// Curve is a value per step and image.
type Curve struct {
	// Name is the key in trace.json; "timestep" is reserved. About is one line of documentation.
	Name  string `json:"name"`
	About string `json:"doc"`
	// Scalar names the planned scalar that is the value of the curve; runs whose plan lacks it have no such curve. If it is empty, the step computes
	// the curve.
	Scalar string `json:"-"`
}

// Step holds the numbers of one step.
type Step struct {
	// Time is the index t of the prior's schedule. It is part of the key of the noise: steps that add noise have
	// different times.
	Time int
	// Times are lists of further time indices at which the step evaluates the network, see [Builder.Moment]. All steps of a
	// run have lists of the same names and lengths.
	Times map[string][]int
	// Lists are further numbers that the graph reads, one for each iteration of a [Builder.Repeat], see [Builder.Listed].
	// All steps of a run have lists of the same names and lengths.
	Lists map[string][]float64
	// Scalars are the numbers that the graph of the step reads. All steps of a run have the same names.
	Scalars map[string]float64
	// Std holds the standard deviation of each draw that the step adds. A missing or zero entry gives zeros.
	Std map[string]float64
}

// Next is the outcome of a step.
type Next struct {
	// State holds the next value of every state tensor.
	State map[string]onnx.Value
	// Curves holds every curve that is no planned scalar, with shape [N].
	Curves map[string]onnx.Value
}

// Draw is a noise tensor of a step, in the shape [N, C, H, W] of the prior's space. Its numbers are independent of those of
// other draws, steps and images.
type Draw struct {
	Name string
	// Count returns the number of tensors for the settings, at least 1: one for each inner iteration of a step. The draw
	// then has the shape [Count, N, C, H, W]; see [Builder.Repeat] and [Builder.DrawAt]. nil: one tensor, without the
	// leading dimension; see [Builder.Draw].
	Count func(s Settings) int
}

// counts returns the number of tensors of each draw, 0 for a draw without Count.
func (i Info) counts(s Settings) ([]int, error) {
	out := make([]int, len(i.Draws))
	for k, d := range i.Draws {
		if d.Count == nil {
			continue
		}
		if out[k] = d.Count(s); out[k] < 1 || out[k] > noise.MaxIterations {
			return nil, fmt.Errorf("method %s: draw %q has a count of %d, want 1 to %d", i.Name, d.Name, out[k], noise.MaxIterations)
		}
	}
	return out, nil
}

// InnerDraws returns the number of noise tensors of draws with [Draw.Count] in one step of an image, 0 if a count is out of range.
func (i Info) InnerDraws(s Settings) int {
	counts, _ := i.counts(s) // nil with an error
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}
