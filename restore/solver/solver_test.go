package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ddiff/restore/operator"
)

var small = operator.Shape{Channels: 3, Height: 32, Width: 48}

func config(t testing.TB, task string, steps int) Config {
	t.Helper()
	c, err := Preset(PresetNatural, task)
	if err != nil {
		t.Fatal(err)
	}
	c.Steps = steps
	return c
}

// How steps are cut into calls, and where a run is resumed, does not change the answer.
func TestChunksDoNotMatter(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.MotionDeblur, small), bundled(t)
	cfg := config(t, op.Task, 23)
	probs := problems(t, op, 2, 0.05)
	var want []Solution
	for _, k := range []int{23, 10, 7, 1} {
		s := newSolver(t, p, op, cfg, 2, k)
		got, err := s.Solve(context.Background(), probs, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		for i := range got {
			if d := maxAbs(got[i].X, want[i].X); d > 1e-5 {
				t.Errorf("chunks of %d: image %d differs by %.2g", k, i, d)
			}
			if !slices.Equal(got[i].Curves.Time, want[i].Curves.Time) {
				t.Errorf("chunks of %d: times %v", k, got[i].Curves.Time)
			}
		}
	}

	// Interrupt after the second chunk and go on elsewhere.
	stop := errors.New("stop")
	s := newSolver(t, p, op, cfg, 2, 7)
	states, curves := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}, make([]Curves, 2)
	err := s.Resume(context.Background(), probs, states, curves, func(step int) error {
		if step == 14 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || states[0].Step != 14 {
		t.Fatalf("error %v after %d steps", err, states[0].Step)
	}
	other := newSolver(t, p, op, cfg, 1, 10)
	for i := range probs {
		if err := other.Resume(context.Background(), probs[i:i+1], states[i:i+1], curves[i:i+1], nil); err != nil {
			t.Fatal(err)
		}
		if d := maxAbs(states[i].X, want[i].X); d > 1e-4 {
			t.Errorf("resumed image %d differs by %.2g", i, d)
		}
		if len(curves[i].Data) != 23 {
			t.Errorf("%d entries in the curves, want 23", len(curves[i].Data))
		}
	}
}

// An image comes out the same alone, in any place of a batch, and beside an empty place.
func TestBatchDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, info := range operator.Builtin() {
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			op, p := newOperator(t, info.Name, small), bundled(t)
			cfg := config(t, op.Task, 12)
			probs := problems(t, op, 3, 0.05)
			four, one := newSolver(t, p, op, cfg, 4, 0), newSolver(t, p, op, cfg, 1, 0)
			together, err := four.Solve(context.Background(), probs, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range probs {
				alone, err := one.Solve(context.Background(), probs[i:i+1], nil)
				if err != nil {
					t.Fatal(err)
				}
				// One grey level of 8 bits is 2/255.
				if d := maxAbs(alone[0].X, together[i].X); d > 1.0/255 {
					t.Errorf("image %d differs by %.2g", i, d)
				}
			}
		})
	}
}

// A zero residual has no gradient, not an infinite one.
func TestZeroResidual(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 8, Width: 8}
	variance := slices.Repeat([]float32{0.1}, shape.Size())
	p := gaussianPrior(t, 1, shape, variance)
	op := newOperator(t, operator.GaussianDeblur, shape)
	for _, gradient := range []string{GradientNorm, GradientSquared} {
		s := newSolver(t, p, op, Config{Method: DDiff, Steps: 2, Gamma0: 1, A: 1, B: 1, T0: 1000, SigmaRule: SigmaFull, Gradient: gradient}, 1, 0)
		zero := func() []float32 { return make([]float32, shape.Size()) }
		states := []State{{X: zero(), U: zero(), XBefore: zero(), ZBefore: zero()}}
		if err := s.Resume(context.Background(), []Problem{{Y: zero()}}, states, make([]Curves, 1), nil); err != nil {
			t.Fatal(err)
		}
		if d := maxAbs(states[0].X, zero()); d != 0 {
			t.Errorf("%s: moved by %g from the solution", gradient, d)
		}
	}
}

func TestDivergenceIsNamed(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.GaussianDeblur, small)
	cfg := config(t, op.Task, 20)
	cfg.Gradient, cfg.Gamma0 = GradientSquared, 1e30
	s := newSolver(t, bundled(t), op, cfg, 1, 0)
	_, err := s.Solve(context.Background(), problems(t, op, 1, 0.05), nil)
	if !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v, want ErrDiverged", err)
	}
}

// Values whose squares overflow are refused by name, not by a broken file later.
func TestExtremeMeasurement(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, small)
	s := newSolver(t, bundled(t), op, config(t, op.Task, 20), 1, 0)
	p := problems(t, op, 1, 0.05)
	p[0].Y[7] = 3e38
	if _, err := s.Solve(context.Background(), p, nil); !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v, want ErrDiverged", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, small)
	s := newSolver(t, bundled(t), op, config(t, op.Task, 20), 1, 5)
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	_, err := s.Solve(ctx, problems(t, op, 1, 0.05), func(step int) error { steps = step; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || steps != 5 {
		t.Errorf("error %v after %d steps, want canceled after 5", err, steps)
	}
}

func TestRespace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total, n int
		want     []int
	}{
		{10, 10, []int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		{1000, 2, []int{999, 0}},
		{1000, 5, []int{999, 749, 500, 250, 0}},
		{11, 3, []int{10, 5, 0}},
	} {
		got, err := Respace(c.total, c.n)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Respace(%d, %d) = %v, %v; want %v", c.total, c.n, got, err, c.want)
		}
	}
	for _, n := range []int{0, 1, 1001} {
		if _, err := Respace(1000, n); !errors.Is(err, ErrConfig) {
			t.Errorf("Respace(1000, %d): error %v", n, err)
		}
	}
}

func TestSigmaRules(t *testing.T) {
	t.Parallel()
	const alpha, next = 0.4, 0.7
	if got, want := sigma(SigmaFull, alpha, next), math.Sqrt(0.3); math.Abs(got-want) > 1e-15 {
		t.Errorf("full: %g, want %g", got, want)
	}
	if got, want := sigma(SigmaDDPM, alpha, next), math.Sqrt(0.3/0.6*(1-0.4/0.7)); math.Abs(got-want) > 1e-15 {
		t.Errorf("ddpm: %g, want %g", got, want)
	}
	for _, rule := range []string{SigmaDDPM, SigmaFull} {
		if got := sigma(rule, alpha, 1); got != 0 {
			t.Errorf("%s: %g after the last step, want 0", rule, got)
		}
	}
}

// Every number of the paper's two tables for pixel space.
func TestPaperPresets(t *testing.T) {
	t.Parallel()
	order := []string{operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur,
		operator.MotionDeblur, operator.PhaseRetrieval, operator.NonlinearDeblur, operator.HDR}
	for preset, table := range map[string]struct {
		gamma0     []float64
		tGamma, t0 []int
	}{
		PresetFFHQ:     {[]float64{18, 30, 50, 2.9, 2.9, 38, 2.5, 3.5}, []int{90, 90, 90, 90, 90, 90, 90, 90}, []int{1, 1, 1, 50, 80, 1, 120, 120}},
		PresetImageNet: {[]float64{18, 50, 50, 1.8, 1.5, 38, 2.5, 3.8}, []int{90, 500, 90, 90, 90, 90, 90, 90}, []int{1, 1, 1, 50, 80, 1, 120, 100}},
	} {
		for i, task := range order {
			c, err := Preset(preset, task)
			if err != nil {
				t.Fatal(err)
			}
			rule := SigmaFull
			if i == 3 || i == 4 || i >= 6 {
				rule = SigmaDDPM
			}
			want := Config{DDiff, 1000, table.gamma0[i], 3.3, 0.1, table.tGamma[i], table.t0[i], rule, GradientNorm}
			if c != want {
				t.Errorf("%s %s: %+v, want %+v", preset, task, c, want)
			}
		}
	}
	for _, name := range Presets() {
		for _, task := range order {
			if c, err := Preset(name, task); err != nil || c.Validate() != nil {
				t.Errorf("preset %s %s: %v %v", name, task, err, c.Validate())
			}
		}
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	good := config(t, operator.HDR, 10)
	for field, change := range map[string]func(*Config){
		"method":     func(c *Config) { c.Method = "dps" },
		"steps":      func(c *Config) { c.Steps = 1 },
		"gamma0":     func(c *Config) { c.Gamma0 = math.NaN() },
		"a":          func(c *Config) { c.A = math.Inf(1) },
		"b":          func(c *Config) { c.B = -1 },
		"t_gamma":    func(c *Config) { c.TGamma = -1 },
		"t0":         func(c *Config) { c.T0 = -1 },
		"sigma_rule": func(c *Config) { c.SigmaRule = "ddim" },
		"gradient":   func(c *Config) { c.Gradient = "mean" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v, want ErrConfig", field, err)
		}
	}
}
