package method_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
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

// The times of DiffPIR are T − 1 minus the numbers that its code has in seq; ρ_t = λσ²/σ̄_t² has the σ of images in [0, 1]. The
// first step starts from the measurement, the last one returns x_t, or x.
func TestDiffPIRPlan(t *testing.T) {
	t.Parallel()
	const lambda, zeta, sigma = 3, 0.4, 0.1
	values := map[string]parameter.Value{
		"lambda": parameter.Number(lambda), "zeta": parameter.Number(zeta), "noise_std": parameter.Number(sigma), "gamma_max": parameter.Number(0.5),
		"answer": parameter.Word("x_t"),
	}
	steps, alphas := plan(t, method.DiffPIR(), 10, values)
	for i, seq := range []int{0, 333, 471, 577, 666, 745, 816, 881, 942, 999} { // ⌊1000·√(i/9)⌋, the last one 999
		st := steps[i]
		if st.Time != 999-seq {
			t.Fatalf("time %d is %d, want %d", i, st.Time, 999-seq)
		}
		alpha := alphas[st.Time]
		rho := lambda * (sigma / 2) * (sigma / 2) / ((1 - alpha) / alpha)
		wantScalar(t, st, "rho", rho)
		wantScalar(t, st, "gamma", min(0.5, 1/(2*rho)))
		start, fromY, ofX, ofXt, std := 1.0, 0.0, 0.0, 1.0, 0.0
		if i == 0 {
			start, fromY = math.Sqrt(1-alpha), math.Sqrt(alpha)
		}
		if i < 9 {
			next := alphas[steps[i+1].Time]
			ofXt = math.Sqrt(1-next) * math.Sqrt(1-zeta) / math.Sqrt(1-alpha)
			ofX, std = math.Sqrt(next)-ofXt*math.Sqrt(alpha), math.Sqrt(zeta)*math.Sqrt(1-next)
		}
		for name, want := range map[string]float64{"start_of_x": start, "start_of_y": fromY, "next_of_x": ofX, "next_of_xt": ofXt} {
			wantScalar(t, st, name, want)
		}
		if got := st.Std["noise"]; !(abs(got-std) <= 1e-12) {
			t.Errorf("noise of %g at time %d, want %g", got, st.Time, std)
		}
	}
	values["answer"] = parameter.Word("x")
	if steps, _ = plan(t, method.DiffPIR(), 10, values); steps[9].Scalars["next_of_x"] != 1 || steps[9].Scalars["next_of_xt"] != 0 {
		t.Errorf("with the answer x the last step has %v", steps[9].Scalars)
	}
	values["skip_type"] = parameter.Word("uniform")
	if steps, _ = plan(t, method.DiffPIR(), 1000, values); steps[1].Time != 998 {
		t.Errorf("second of 1000 uniform times is %d", steps[1].Time)
	}
	s := resolve(t, method.Request{Method: "diffpir", Preset: "natural", Task: operator.HDR, Steps: 502})
	if _, err := method.DiffPIR().Plan(s, prior.Schedule{AlphaBar: alphas}, operator.Shape{}); !errors.Is(err, method.ErrSetting) ||
		!strings.Contains(err.Error(), "skip_type: uniform") {
		t.Errorf("502 quadratic steps: %v", err)
	}
	if steps, _ := plan(t, method.DiffPIR(), 500, nil); len(steps) != 500 {
		t.Errorf("%d quadratic steps, want 500", len(steps))
	}
}

// The times of DDRM and RED-diff are range(0, 1000, 1000//S) from its end; σ_t = √(1−ᾱ_t)/√ᾱ_t.
func TestDDRMPlan(t *testing.T) {
	t.Parallel()
	steps, alphas := plan(t, method.DDRM(), 20, map[string]parameter.Value{"noise_std": parameter.Number(0.1)})
	for i, st := range steps {
		at, next, first, std := 950-50*i, 1.0, 0.0, 1.0
		if i == 0 {
			first = 1
		}
		if i < 19 {
			next = alphas[at-50]
		} else {
			std = 0
		}
		if st.Time != at || st.Std["noise"] != std {
			t.Errorf("step %d has the time %d and the noise %g, want %d and %g", i, st.Time, st.Std["noise"], at, std)
		}
		wantScalar(t, st, "first", first)
		wantScalar(t, st, "level", math.Sqrt(1-alphas[at])/math.Sqrt(alphas[at]))
		wantScalar(t, st, "next_level", math.Sqrt(1-next)/math.Sqrt(next))
		wantScalar(t, st, "inverse_sigma", 10)
	}
	info := method.DDRM().Info()
	for _, task := range operator.Builtin() {
		if refused := info.Refuses(task) != ""; refused == (task.SVD != nil) {
			t.Errorf("%s: refused %v", task.Name, refused)
		}
	}
	if info.Refuses((&operator.File{}).Definition("blur")) == "" {
		t.Error("an operator from a file is not refused")
	}
}

func TestREDDiffPlan(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(sigma float64) float64{
		"linear": func(x float64) float64 { return x }, "sqrt": math.Sqrt, "square": func(x float64) float64 { return x * x },
		"log": math.Log1p, "trunc_linear": func(x float64) float64 { return min(x, 1) }, "const": func(float64) float64 { return 1 },
		"power2over3": func(x float64) float64 { return math.Cbrt(x * x) },
	} {
		steps, alphas := plan(t, method.REDDiff(), 8, map[string]parameter.Value{
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

// The times are those of the code's Purification_Schedule and space_timesteps.
func TestDCDPPlan(t *testing.T) {
	t.Parallel()
	values := func(from, to, evaluations float64) map[string]parameter.Value {
		return map[string]parameter.Value{
			"ddim_init_timestep": parameter.Number(from), "ddim_end_timestep": parameter.Number(to),
			"ddim_num_iterations": parameter.Number(evaluations), "lr": parameter.Number(1000),
		}
	}
	steps, alphas := plan(t, method.DCDP(), 10, values(400, 0, 5))
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
	steps, _ = plan(t, method.DCDP(), 4, values(2, 0, 1))
	for i, want := range []int{3, 2, 1, 0} {
		if st := steps[i]; st.Time != want || !slices.Equal(st.Times["ddim"], []int{max(want, 1)}) || st.Lists["next_alpha"][0] != 1 {
			t.Errorf("step %d: %+v, want the time %d", i, st, want)
		}
	}
	if steps, _ = plan(t, method.DCDP(), 4, values(1000, 1000, 2)); steps[0].Time != 999 || steps[3].Time != 996 {
		t.Errorf("times from %d to %d, want 999 to 996", steps[0].Time, steps[3].Time)
	}
}

// With start_noise, the proximal run of DDiff begins where the prior's noise is that factor of the measurement's: at √((1−ᾱ)/ᾱ) = 0.2 for sigma 0.1
// and the factor 2, and later for less noise.
func TestStartNoise(t *testing.T) {
	t.Parallel()
	first := func(sigma, factor float64) int {
		steps, _ := plan(t, method.DDiff(), 2, map[string]parameter.Value{"noise_std": parameter.Number(sigma), "start_noise": parameter.Number(factor)})
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
