package solver

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
)

// ErrDiverged reports a state or curve that is not finite: the step size is too large for the problem.
var ErrDiverged = errors.New("diverged")

// Problem is one image to restore.
type Problem struct {
	// Y is the measurement, of the operator's measurement shape.
	Y []float32
	// Draw is the encoded mask or kernel, nil for operators without.
	Draw []float32
	// Weights are the square roots of the weights of the pixels of Y in the data term, for all channels, where the run has them. Nil: all are 1.
	Weights []float32
	// Key draws the initial state and the noise of the steps.
	Key noise.Key
}

// Solution is one restored image.
type Solution struct {
	// X is the restored image; values may lie slightly outside [−1, 1].
	X []float32
	// Curves of the run, one entry per step made in this process.
	Curves Curves
	// Kept are the images after the steps that were asked for.
	Kept Kept
}

// Solver solves batches of one size for one run. It is used by one goroutine at a time.
type Solver struct {
	run     *method.Run
	build   Build
	n       int
	rt      *onnxruntime.Runtime
	seed    maphash.Seed
	digest  uint64 // of the model of a step
	sess    *session
	in      map[string]*onnxruntime.Tensor // inputs that the host writes, without draws
	draws   [2][]*onnxruntime.Tensor       // those of the present step and those of the next one
	state   []*buffers
	curves  []*onnxruntime.Tensor // computed
	norm    *onnxruntime.Tensor   // of the first tensor of the state
	reader  *reader               // nil if the host accesses the state
	decoder *decoder              // of a latent prior, else nil
	streams []*Solver             // that make the steps of parts of the batch; empty: this solver makes them
	using   sync.Mutex            // held by a call that uses tensors, for which Close waits
}

// New builds and compiles the solver of a run for batches of n images. Close it after use. The error wraps ErrConfig for a
// wrong build, onnxruntime.ErrMemory if a smaller batch may fit, and onnxruntime.ErrFallback if the GPU does not support every operation.
func New(rt *onnxruntime.Runtime, run *method.Run, n int, build Build) (*Solver, error) {
	build, err := build.of(rt, run)
	if err != nil {
		return nil, err
	}
	s := newStream(rt, run, n, build)
	if parts := run.Prior.Streams(rt, n, build.Streams, run.Operator.Image.Height, run.Operator.Image.Width); len(parts) > 1 {
		for i, p := range parts {
			s.streams = append(s.streams, newStream(rt.Stream(i, p.Threads), run, p.Images, build))
		}
	}
	if len(s.streams) == 0 {
		err = s.compile()
	} else {
		err = prior.Beside(len(s.streams), func(i int) error { return s.streams[i].compile() })
	}
	if err == nil && run.Info.Latent {
		s.decoder, err = newDecoder(rt, run, n)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Steps is the number of steps of a run.
func (s *Solver) Steps() int { return len(s.run.Steps) }

// Tiles is the number of tiles of an image, 1 for images that are not divided.
func (s *Solver) Tiles() int {
	if g := s.run.Grid(); g != nil {
		return g.Len()
	}
	return 1
}

// Watch calls f with the share of the present step after each call of the network, where it predicts in tiles: steps of large images take minutes. Nil
// ends that.
func (s *Solver) Watch(f func(share float64)) {
	if s.sess != nil {
		s.sess.watch = f
	}
}

// Cost returns the cost of a run for one image, see [method.Run.Cost].
func (s *Solver) Cost() (method.Cost, error) { return s.run.Cost() }

// Close releases the runtime's memory, after the end of a call in progress.
func (s *Solver) Close() error {
	s.using.Lock()
	defer s.using.Unlock()
	errs := []error{s.decoder.close(), s.reader.close()}
	if s.sess != nil {
		errs = append(errs, s.sess.Close())
	}
	for _, stream := range s.streams {
		errs = append(errs, stream.Close())
	}
	return errors.Join(errs...)
}

// Resume continues from states with equal numbers of steps to the end; Answers then has the images.
// Curves, unless nil, are updated after every step, states when Resume returns: meanwhile they are in the memory of the device. An error from progress
// stops the run there, and the end of the context terminates the step in progress; states and curves are then those after the last step, or those of
// the call's beginning if the device does not return them, and can be stored and resumed.
func (s *Solver) Resume(ctx context.Context, problems []Problem, states []State, curves []Curves, progress func(step int) error) error {
	s.using.Lock()
	defer s.using.Unlock()
	parts, err := s.divide(problems, states, curves)
	if err != nil {
		return err
	}
	first := states[0].Step
	for _, p := range parts {
		p.drawAhead(first)
	}
	err = s.makeSteps(ctx, parts, first, progress)
	for _, p := range parts {
		p.drawing.Wait()
		if unread := p.unload(ctx, first); unread != nil && (err == nil || errors.Is(err, errKeep)) {
			err = unread
		}
	}
	return err
}

// makeSteps makes the steps from first to the end.
func (s *Solver) makeSteps(ctx context.Context, parts []batchPart, first int, progress func(step int) error) error {
	for at := first; at < s.Steps(); at++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := prior.Beside(len(parts), func(i int) error { return parts[i].makeStep(ctx, at) }); err != nil {
			return fmt.Errorf("step %d: %w", at+1, err)
		}
		if progress != nil {
			if err := progress(at + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// tooLarge explains a divergence.
func (s *Solver) tooLarge() string {
	settings, err := s.run.Settings.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("the step size is too large: %s", settings)
}

// load checks the parts of the problems, which begin at problem first of the batch, and copies them and the states to the
// model's inputs. Unused places of the batch repeat the first problem. It binds the inputs that are equal in all steps.
func (s *Solver) load(problems []Problem, states []State, first int) error {
	err := prior.Beside(s.n, func(i int) error {
		j := i
		if j >= len(problems) {
			j = 0
		}
		if err := s.loadPlace(i, problems[j], states[j]); err != nil {
			return fmt.Errorf("solve: problem %d: %w", first+j+1, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range s.state {
		b.now = b.host
	}
	for _, name := range []string{method.InputMeasurement, method.InputMask, method.InputWeights} {
		if t := s.in[name]; t != nil {
			if err := s.sess.set(name, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadPlace copies a problem and its state to a place of the batch.
func (s *Solver) loadPlace(place int, problem Problem, state State) error {
	if got, want := len(state.Tensors), len(s.run.Info.State); got != want {
		return fmt.Errorf("%d state tensors, want %d", got, want)
	}
	parts := []Tensor{{method.InputMeasurement, s.run.Operator.Short(problem.Y)}, {method.InputMask, problem.Draw}}
	if t := s.in[method.InputWeights]; t != nil {
		weights := problem.Weights
		if weights == nil {
			weights = slices.Repeat([]float32{1}, len(t.F32)/s.n)
		}
		parts = append(parts, Tensor{method.InputWeights, weights})
	}
	for _, t := range state.Tensors {
		parts = append(parts, Tensor{method.StateInput(t.Name), t.Data})
	}
	for _, part := range parts {
		t, ok := s.in[part.Name]
		if !ok {
			if part.Name == method.InputMask {
				continue
			}
			return fmt.Errorf("method %s has no %s", s.run.Info.Name, part.Name)
		}
		size := len(t.F32) / s.n
		if len(part.Data) != size {
			return fmt.Errorf("%s has %d elements, want %d", part.Name, len(part.Data), size)
		}
		copy(t.F32[place*size:], part.Data)
	}
	return nil
}

// record appends the curves of one image after a step. computed returns the value of a computed curve.
func (s *Solver) record(c *Curves, st method.Step, computed func(curve int) float64) {
	if c.Curves == nil {
		for _, curve := range s.run.Info.Curves {
			c.Curves = append(c.Curves, Curve{Name: curve.Name})
		}
	}
	c.Time = append(c.Time, st.Time)
	k := 0
	for i, curve := range s.run.Info.Curves {
		v := st.Scalars[curve.Scalar]
		if curve.Scalar == "" {
			v = computed(k)
			k++
		}
		c.Curves[i].Values = append(c.Curves[i].Values, v)
	}
}
