package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// latentCase is a prior with latents of a quarter of the image's values, and settings that add noise in some steps.
func latentCase(t *testing.T, op *operator.Operator, steps int, changes ...any) (*prior.Prior, method.Settings) {
	t.Helper()
	latent := operator.Shape{Channels: 3, Height: op.Image.Height / 2, Width: op.Image.Width / 2}
	p := linearPrior(t, newLinearStage(op.Image, latent, 1), slices.Repeat([]float32{0.2}, latent.Size()))
	return p, latentSettings(t, op.Task, steps, append([]any{"gamma0", 8, "b", 1, "t0", 300}, changes...)...)
}

// With a rotation as autoencoder and a prior that no rotation changes, every reading is DDiff in pixels from a rotated start.
func TestLatentIsRotatedDDiff(t *testing.T) {
	t.Parallel()
	const steps, variance = 40, 0.02
	shape := operator.Shape{Channels: 1, Height: 16, Width: 16}
	rotated := operator.Shape{Channels: 4, Height: 8, Width: 8}
	key := noise.Key{5}
	stage := newLinearStage(shape, rotated, 1)
	latents := linearPrior(t, stage, slices.Repeat([]float32{variance}, rotated.Size()))
	pixels := gaussianPrior(t, 1, shape, slices.Repeat([]float32{variance}, shape.Size()))
	for _, task := range []string{operator.GaussianDeblur, operator.InpaintRandom, operator.HDR} {
		op := newOperator(t, task, shape)
		prob := problems(t, op, 1, 0.05)
		for gradient, gamma0 := range map[string]float64{method.GradientNorm: 2, method.GradientSquared: 0.2, method.GradientUnit: 2} { // so small that DDiff clips nothing
			same := []any{"gamma0", gamma0, "a", 0.1, "b", 0.1, "t_gamma", 90, "t0", "none", "sigma_rule", "ddpm", "gradient", gradient}
			settings := resolve(t, method.Request{Method: "ddiff", Preset: "ffhq", Task: task, Steps: steps, // without recover
				Values: map[string]parameter.Value{"answer": parameter.Word("x_plus_u")}})
			s := newSolver(t, pixels, op, with(settings, append(same, "t0", 999)...), 1)
			start := s.Start(key)
			want := []State{start.Clone()}
			must(t, s.Resume(context.Background(), prob, want, make([]Curves, 1), nil))
			for name, changes := range latentVariants() {
				s := newSolver(t, latents, op, latentSettings(t, task, steps, append(slices.Clone(changes), append(same, "t0", 999)...)...), 1)
				st := []State{s.Start(key)}
				for i, v := range apply(stage.encode, float64s(start.Image())) {
					st[0].Tensors[0].Data[i] = float32(v)
				}
				must(t, s.Resume(context.Background(), prob, st, make([]Curves, 1), nil))
				got, err := s.Answers(context.Background(), st)
				must(t, err)
				if d := maxAbs(got[0], want[0].Image()); !(d <= 1e-3) {
					t.Errorf("%s, %s, gradient %s: differs by %.2g from DDiff", task, name, gradient, d)
				}
			}
		}
	}
}

// The dual variable has the shape of images for one reading only, so a state of that reading does not fit the others.
func TestLatentStateShapes(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, operator.Shape{Channels: 3, Height: 16, Width: 16})
	p, cfg := latentCase(t, op, 4)
	key := noise.Key{1}
	st := newSolver(t, p, op, with(cfg, "dual", "pixel"), 1).Start(key)
	for name, changes := range latentVariants() {
		run := newRun(t, p, op, with(cfg, changes...))
		if fits := Fits(run, st, Curves{}); fits != (name == "pixel") {
			t.Errorf("%s: the state of an image as dual variable fits: %v", name, fits)
		}
	}
}

func TestLatentCancel(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, operator.Shape{Channels: 3, Height: 16, Width: 16})
	p, cfg := latentCase(t, op, 20)
	s := newSolver(t, p, op, cfg, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Answers(ctx, []State{s.Start(noise.Key{1})}); !errors.Is(err, context.Canceled) {
		t.Errorf("answers after the cancellation: error %v, want canceled", err)
	}
}

// NaN from a decoder ends the run as a divergence does, in a step and in the last decoding.
func TestLatentNaN(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, operator.Shape{Channels: 3, Height: 16, Width: 16})
	latent := operator.Shape{Channels: 3, Height: 8, Width: 8}
	variance := slices.Repeat([]float32{0.2}, latent.Size())
	stage := newLinearStage(op.Image, latent, 1)
	sound := linearPrior(t, stage, variance)
	stage.decode[7][3] = math.NaN()
	broken := linearPrior(t, stage, variance)
	for name, changes := range latentVariants() {
		cfg := latentSettings(t, op.Task, 4, append(slices.Clone(changes), "gamma0", 8)...)
		if _, err := newSolver(t, broken, op, cfg, 1).Solve(context.Background(), problems(t, op, 1, 0.05), nil); !errors.Is(err, ErrDiverged) {
			t.Errorf("%s: error %v, want ErrDiverged", name, err)
		}
		s := newSolver(t, sound, op, cfg, 1)
		st := s.Start(noise.Key{1})
		st.Tensors[0].Data[0] = float32(math.Inf(1))
		if _, err := s.Answers(context.Background(), []State{st}); !errors.Is(err, ErrDiverged) {
			t.Errorf("%s: decode infinity: error %v, want ErrDiverged", name, err)
		}
	}
}

// Answers refuses states that are no batch of the solver, and names the place of an answer that is not finite.
func TestLatentAnswersAreRefused(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, operator.Shape{Channels: 3, Height: 16, Width: 16})
	p, cfg := latentCase(t, op, 4)
	s := newSolver(t, p, op, cfg, 2)
	start := func() State { return s.Start(noise.Key{1}) }
	short, infinite := start(), start()
	short.Tensors[0].Data = short.Tensors[0].Data[1:]
	infinite.Tensors[0].Data[0] = float32(math.Inf(1))
	for want, states := range map[string][]State{
		"decode 0 answers: the batch is 2":                                 nil,
		"decode 3 answers: the batch is 2":                                 {start(), start(), start()},
		"decode answer 2: the latent has 191 elements, want 192":           {start(), short},
		"decode answer 2 of the batch: diverged: the step size is too lar": {start(), infinite},
	} {
		if _, err := s.Answers(t.Context(), states); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The residual of a mask is brought to the image by the adjoint as by the change of size, which is none: both values of back give one answer.
func TestPSLDBack(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.InpaintRandom, operator.Shape{Channels: 3, Height: 16, Width: 16})
	p, _ := latentCase(t, op, 4)
	var answers [][]float32
	for _, back := range []string{"resize", "adjoint"} {
		cfg := with(resolve(t, method.Request{Method: "psld", Preset: "ffhq", Task: op.Task, Steps: 6}), "gamma", 0.2, "omega", 0.3, "back", back)
		answers = append(answers, solve(t, newSolver(t, p, op, cfg, 1), problems(t, op, 1, 0.05))[0].X)
	}
	if d := maxAbs(answers[0], answers[1]); !(d <= 1e-4) {
		t.Errorf("the answers differ by %.2g", d)
	}
}

// A method runs only in its prior's space.
func TestLatentNeedsItsSpace(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, operator.Shape{Channels: 3, Height: 16, Width: 16})
	p, cfg := latentCase(t, op, 4)
	for want, err := range map[string]error{
		"latent_ddiff needs a latent prior": second(method.NewRun(named(t, "latent_ddiff"), cfg, bundled(t), op)),
		"ddiff works on pixels":             second(method.NewRun(named(t, "ddiff"), config(t, op.Task, 4), p, op)),
	} {
		if !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want ErrSetting and %q", err, want)
		}
	}
}

func second(_ *method.Run, err error) error { return err }
