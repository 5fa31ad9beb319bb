package method_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// plan returns the plan of a method for 128×256 images and the linear schedule of 1000 times.
func plan(t *testing.T, m method.Method, steps int, values map[string]parameter.Value) ([]method.Step, []float64) {
	t.Helper()
	schedule, err := prior.ParseSchedule("linear:1e-4:0.02:1000")
	must(t, err)
	s := resolve(t, method.Request{Method: m.Info().Name, Preset: "natural", Task: operator.InpaintBox, Steps: steps, Values: values})
	out, err := m.Plan(s, schedule, operator.Shape{Channels: 3, Height: 128, Width: 256})
	must(t, err)
	return out, schedule.AlphaBar
}

func wantScalar(t *testing.T, st method.Step, name string, want float64) {
	t.Helper()
	if got, ok := st.Scalars[name]; !ok || !(abs(got-want) <= 1e-12*max(1, abs(want))) {
		t.Errorf("time %d: %s is %g, want %g", st.Time, name, got, want)
	}
}

// The times of DiffPIR are quadratic, where they differ, or have equal distances.
func TestDiffPIRTimes(t *testing.T) {
	t.Parallel()
	values := map[string]parameter.Value{"skip_type": parameter.Word("uniform")}
	steps, alphas := plan(t, named(t, "diffpir"), 1000, values)
	if steps[1].Time != 998 {
		t.Errorf("second of 1000 uniform times is %d", steps[1].Time)
	}
	s := resolve(t, method.Request{Method: "diffpir", Preset: "natural", Task: operator.HDR, Steps: 502})
	if _, err := named(t, "diffpir").Plan(s, prior.Schedule{AlphaBar: alphas}, operator.Shape{}); !errors.Is(err, method.ErrSetting) ||
		!strings.Contains(err.Error(), "skip_type: uniform") {
		t.Errorf("502 quadratic steps: %v", err)
	}
	if steps, _ := plan(t, named(t, "diffpir"), 500, nil); len(steps) != 500 {
		t.Errorf("%d quadratic steps, want 500", len(steps))
	}
}

// The times of RED-diff are range(0, 1000, 1000//S) from its end; σ_t = √(1−ᾱ_t)/√ᾱ_t.
func TestREDDiffPlan(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(sigma float64) float64{
		"linear": func(x float64) float64 { return x }, "sqrt": math.Sqrt, "square": func(x float64) float64 { return x * x },
		"log": math.Log1p, "trunc_linear": func(x float64) float64 { return min(x, 1) }, "const": func(float64) float64 { return 1 },
		"power2over3": func(x float64) float64 { return math.Cbrt(x * x) },
	} {
		steps, alphas := plan(t, named(t, "reddiff"), 8, map[string]parameter.Value{
			"denoise_term_weight": parameter.Word(name), "grad_term_weight": parameter.Number(0.3), "lr": parameter.Number(0.2),
		})
		for i, st := range steps {
			at := 875 - 125*i
			if st.Time != at || st.Std["noise"] != 1 {
				t.Fatalf("step %d has the time %d and the noise %g", i, st.Time, st.Std["noise"])
			}
			wantScalar(t, st, "weight", 0.3*f(math.Sqrt((1-alphas[at])/alphas[at])))
			rate := 0.2 / (1 - math.Pow(0.9, float64(i+1)))
			if i == 7 {
				rate = 0
			}
			wantScalar(t, st, "rate", rate)
			wantScalar(t, st, "unbiased", 1/(1-math.Pow(0.99, float64(i+1))))
		}
	}
}

// A late run of RED-diff has times at the distance ⌊100/8⌋ up to 99.
func TestLateREDDiff(t *testing.T) {
	t.Parallel()
	steps, _ := plan(t, named(t, "reddiff"), 8, map[string]parameter.Value{"start_at": parameter.Word("time"), "t_start": parameter.Number(99)})
	for i, st := range steps {
		if st.Time != 84-12*i {
			t.Errorf("step %d has the time %d, want %d", i, st.Time, 84-12*i)
		}
	}
}

// The times are those of the code's Purification_Schedule and space_timesteps.
func TestDCDPPlan(t *testing.T) {
	t.Parallel()
	values := func(from, to, evaluations float64) map[string]parameter.Value {
		return map[string]parameter.Value{
			"ddim_init_timestep": parameter.Number(from), "ddim_end_timestep": parameter.Number(to),
			"ddim_num_iterations": parameter.Number(evaluations), "lr": parameter.Number(1000),
		}
	}
	steps, alphas := plan(t, named(t, "dcdp"), 10, values(400, 0, 5))
	for i, at := range []int{400, 356, 311, 267, 222, 178, 133, 89, 44, 1} {
		st := steps[i]
		if st.Time != at-1 {
			t.Errorf("step %d has the time %d, want %d", i, st.Time, at-1)
		}
		wantScalar(t, st, "lr", 500) // 128×256 is half of 256×256
		for k, at := range st.Times["ddim"] {
			next := 1.0
			if k < 4 {
				next = alphas[st.Times["ddim"][k+1]]
			}
			if got := st.Lists["next_alpha"][k]; !(abs(got*got-next) <= 1e-12) {
				t.Errorf("step %d, time %d: ᾱ of the next time is %g, want %g", i, at, got*got, next)
			}
			if a, s := st.Lists["next_alpha"][k], st.Lists["next_sigma"][k]; !(abs(a*a+s*s-1) <= 1e-12) {
				t.Errorf("step %d, time %d: √ᾱ and √(1−ᾱ) of the next time are %g and %g", i, at, a, s)
			}
		}
	}
	for step, want := range map[int][]int{0: {399, 299, 200, 100, 0}, 8: {43, 32, 22, 11, 0}, 9: {1, 1, 1, 1, 0}} {
		if got := steps[step].Times["ddim"]; !slices.Equal(got, want) {
			t.Errorf("step %d evaluates the network at %v, want %v", step, got, want)
		}
	}
	// Tweedie's formula, and times that would be equal.
	steps, _ = plan(t, named(t, "dcdp"), 4, values(2, 0, 1))
	for i, want := range []int{3, 2, 1, 0} {
		if st := steps[i]; st.Time != want || !slices.Equal(st.Times["ddim"], []int{max(want, 1)}) || st.Lists["next_alpha"][0] != 1 {
			t.Errorf("step %d: %+v, want the time %d", i, st, want)
		}
	}
	if steps, _ = plan(t, named(t, "dcdp"), 4, values(1000, 1000, 2)); steps[0].Time != 999 || steps[3].Time != 996 {
		t.Errorf("times from %d to %d, want 999 to 996", steps[0].Time, steps[3].Time)
	}
}

// With start_noise, a run of DPIR begins where the prior's noise is that factor of the measurement's: at √((1−ᾱ)/ᾱ) = 0.2 for sigma 0.1
// and the factor 2, and later for less noise.
func TestStartNoise(t *testing.T) {
	t.Parallel()
	first := func(sigma, factor float64) int {
		steps, _ := plan(t, named(t, "dpir"), 2, map[string]parameter.Value{
			"noise_std": parameter.Number(sigma), "start_at": parameter.Word("noise"), "start_noise": parameter.Number(factor),
		})
		return steps[0].Time
	}
	for _, c := range []struct {
		sigma, factor float64
		want          int
	}{{0.2, 1, 57}, {0.1, 2, 57}, {0.1, 1, 26}, {0.05, 1, 11}} {
		if got := first(c.sigma, c.factor); got != c.want {
			t.Errorf("sigma %g, factor %g: the run begins at %d, want %d", c.sigma, c.factor, got, c.want)
		}
	}
}
