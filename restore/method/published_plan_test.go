package method_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// published lays out the steps of a built-in method for 32×32 images and the linear schedule.
func published(t *testing.T, name string, steps int, values map[string]parameter.Value) ([]method.Step, error) {
	t.Helper()
	schedule, err := prior.ParseSchedule("linear:1e-4:0.02:1000")
	must(t, err)
	s := resolve(t, method.Request{Method: name, Preset: "natural", Task: "toy", Steps: steps, Values: values})
	return named(t, name).Plan(s, schedule, operator.Shape{Channels: 3, Height: 32, Width: 32})
}

// DPS samples with the variance of the posterior or β, and the last step adds no noise and gives z.
func TestDPSPlan(t *testing.T) {
	t.Parallel()
	small, err := published(t, "dps", 10, nil)
	must(t, err)
	large, err := published(t, "dps", 10, map[string]parameter.Value{"variance": parameter.Word("beta")})
	must(t, err)
	for i, st := range small {
		if got := st.Scalars["scale"]; math.Abs(got-0.3*32/256) > 1e-12 {
			t.Errorf("step %d: scale %g, want that of 256×256 images times 32/256", i+1, got)
		}
		a, b := st.Std["noise"], large[i].Std["noise"]
		if last := i == len(small)-1; last != (a == 0) || last != (b == 0) || !last && a >= b {
			t.Errorf("step %d: standard deviations %g and %g", i+1, a, b)
		}
	}
	last := small[len(small)-1]
	if z, x := last.Scalars["mean_z"], last.Scalars["mean_xt"]; math.Abs(z-1) > 1e-12 || x != 0 {
		t.Errorf("the last step has the factors %g of z and %g of x_t", z, x)
	}
}

// DAPS anneals from sigma_max to one step above sigma_min, with a falling step size; each ODE ends at ode_end, and the last step
// adds no noise.
func TestDAPSPlan(t *testing.T) {
	t.Parallel()
	const steps = 200
	got, err := published(t, "daps", steps, nil)
	must(t, err)
	for i, st := range got {
		levels := st.Lists["level"]
		end := levels[len(levels)-1] * st.Lists["kept"][len(levels)-1]
		if len(levels) != 5 || len(st.Times["ode"]) != 5 || math.Abs(levels[0]-st.Scalars["sigma"]) > 1e-9 || math.Abs(end-0.01) > 1e-9 {
			t.Fatalf("step %d: ODE through %v to %g at times %v", i+1, levels, end, st.Times["ode"])
		}
		want := 0.0
		if i+1 < steps {
			want = got[i+1].Scalars["sigma"]
		}
		if st.Std["noise"] != want || i > 0 && (st.Time >= got[i-1].Time || st.Scalars["start"] != 1 || st.Scalars["data"] >= got[i-1].Scalars["data"]) {
			t.Errorf("step %d: time %d, scalars %v, noise %g, want %g", i+1, st.Time, st.Scalars, st.Std["noise"], want)
		}
	}
	first, last := got[0].Scalars, got[steps-1].Scalars
	if first["start"] != first["sigma"] || math.Abs(first["sigma"]-100) > 1e-9 || last["sigma"] <= 0.1 || last["sigma"] > 0.11 || math.Abs(first["data"]-1) > 1e-9 {
		t.Errorf("first step %v, last step %v", first, last)
	}
	_, err = published(t, "daps", 900, nil)
	if !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), "steps: ") {
		t.Errorf("900 steps from level 100 to 0.1: error %v", err)
	}
}

// DMPlug takes more steps than the schedule has times, corrects Adam's moments, and has the times of the code.
func TestDMPlugPlan(t *testing.T) {
	t.Parallel()
	got, err := published(t, "dmplug", 0, nil)
	must(t, err)
	if len(got) != 5000 {
		t.Fatalf("%d steps, want 5000", len(got))
	}
	if times := got[7].Times["ddim"]; len(times) != 3 || times[0] != 666 || times[1] != 333 || times[2] != 0 {
		t.Errorf("times %v, want 666, 333 and 0", times)
	}
	if a := got[0].Scalars; math.Abs(a["rate"]-0.1) > 1e-9 || math.Abs(a["root"]-math.Sqrt(1000)) > 1e-6 {
		t.Errorf("first step %v", a)
	}
	if b := got[4999].Scalars; math.Abs(b["rate"]-0.01) > 1e-9 || math.Abs(b["root"]-1) > 0.01 {
		t.Errorf("last step %v", b)
	}
}

// An annealing whose levels would not fall is refused.
func TestRisingAnnealing(t *testing.T) {
	t.Parallel()
	for _, low := range []float64{100, 200} {
		_, err := published(t, "daps", 3, map[string]parameter.Value{"sigma_min": parameter.Number(low)})
		if !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), "sigma_min") {
			t.Errorf("from 100 to %g: error %v, want one that names sigma_min", low, err)
		}
	}
}

// Turns of DCDP whose noise would rise are refused.
func TestRisingPurification(t *testing.T) {
	t.Parallel()
	_, err := published(t, "dcdp", 3, map[string]parameter.Value{"ddim_init_timestep": parameter.Number(20), "ddim_end_timestep": parameter.Number(40)})
	if !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), "ddim_end_timestep: 40 is above ddim_init_timestep, 20") {
		t.Errorf("error %v, want one that names both times", err)
	}
}

// The remedies for an annealing without enough times help.
func TestShortAnnealing(t *testing.T) {
	t.Parallel()
	plan := func(high, low float64) error {
		_, err := published(t, "daps", 200, map[string]parameter.Value{"sigma_max": parameter.Number(high), "sigma_min": parameter.Number(low)})
		return err
	}
	err := plan(0.3, 0.1)
	if !errors.Is(err, method.ErrSetting) || !strings.Contains(err.Error(), "use fewer, or a higher sigma_min or sigma_max") {
		t.Fatalf("error %v", err)
	}
	if plan(0.3, 0.01) == nil {
		t.Error("a lower sigma_min helps")
	}
	if err := plan(1, 0.1); err != nil {
		t.Errorf("a higher sigma_max: %v", err)
	}
	if plan(100, 1e-6) == nil {
		t.Error("a low sigma_min has times")
	}
	if err := plan(100, 0.1); err != nil {
		t.Errorf("a higher sigma_min: %v", err)
	}
}
