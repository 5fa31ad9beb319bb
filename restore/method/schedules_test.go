package method_test

import (
	"math"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestSchedules: a setting of several numbers is that of its place among the steps.
func TestSchedules(t *testing.T) {
	t.Parallel()
	const steps = 5
	image := operator.Shape{Channels: 3, Height: 256, Width: 256}
	linear, err := prior.ParseSchedule("linear:1e-4:0.02:1000")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, preset, setting, scalar string }{
		{"ddiff", "gradient", "gamma0", "gamma"}, {"ddiff", "natural", "lambda", "rho"}, {"dpir", "natural", "lambda", "rho"}, {"diffpir", "natural", "lambda", "rho"},
	} {
		plan := func(v parameter.Value) []method.Step {
			t.Helper()
			r := method.Request{Method: c.method, Preset: c.preset, Task: operator.MotionDeblur, Steps: steps, Values: map[string]parameter.Value{c.setting: v}}
			s, err := method.Builtin().Resolve(r, 1000)
			if err != nil {
				t.Fatal(err)
			}
			m, err := method.Builtin().Find(c.method)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Plan(s, linear, image)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		one, several := plan(parameter.Number(1)), plan(parameter.Word("8 4 1"))
		for i, want := range []float64{8, 6, 4, 2.5, 1} {
			if got := several[i].Scalars[c.scalar] / one[i].Scalars[c.scalar]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %s: %g times that of 1 at step %d, want %g", c.method, c.setting, got, i, want)
			}
		}
	}
}
