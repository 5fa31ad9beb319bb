package method_test

import (
	"regexp"
	"slices"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// Every built-in method has a complete declaration, and every preset row resolves.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	var methods []string
	tasks := operator.Builtin().Names()
	for _, m := range method.Builtin() {
		i := m.Info()
		methods = append(methods, i.Name)
		if !name.MatchString(i.Name) || i.About == "" || i.Citation == "" || i.Steps < 2 {
			t.Errorf("method %q: name, documentation, citation or steps are missing", i.Name)
		}
		var names []string
		for _, p := range i.Parameters {
			names = append(names, p.Name)
			if !name.MatchString(p.Name) || p.Doc == "" || p.Name == "method" || p.Name == "steps" {
				t.Errorf("%s: parameter %q has a bad name or no documentation", i.Name, p.Name)
			}
			if err := p.Test(p.Start()); err != nil {
				t.Errorf("%s: default of %s: %v", i.Name, p.Name, err)
			}
		}
		for _, c := range i.Curves {
			names = append(names, "curve "+c.Name)
			if !name.MatchString(c.Name) || c.About == "" || c.Name == "timestep" {
				t.Errorf("%s: curve %q has a bad name or no documentation", i.Name, c.Name)
			}
		}
		for k, s := range i.State {
			names = append(names, "state "+s.Name)
			if k == 0 && s.Pixels != nil {
				t.Errorf("%s: the answer %s does not have the shape of the prior's space", i.Name, s.Name)
			}
		}
		for _, d := range i.Draws {
			names = append(names, "draw "+d.Name)
		}
		for _, r := range i.Rows {
			names = append(names, r.Preset+" "+r.Task)
			if r.Task != method.OtherTasks && !slices.Contains(tasks, r.Task) {
				t.Errorf("%s: preset %s has a row for task %q", i.Name, r.Preset, r.Task)
			}
			for p := range r.Values {
				if _, ok := i.Parameters.Find(p); !ok {
					t.Errorf("%s: preset %s, task %s: no parameter %q", i.Name, r.Preset, r.Task, p)
				}
			}
			resolve(t, method.Request{Method: i.Name, Preset: r.Preset, Task: r.Task})
		}
		wantDistinct(t, names)
	}
	wantDistinct(t, methods)
}

func wantDistinct(t *testing.T, names []string) {
	t.Helper()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is declared twice: %v", names)
	}
}

// The noise of the reverse step follows the rule, and stops at t0.
func TestDDiffNoise(t *testing.T) {
	t.Parallel()
	schedule, err := prior.ParseSchedule("linear:1e-4:0.02:1000")
	must(t, err)
	const steps = 20
	for rule, std := range map[string]func(l method.Level) float64{
		"full": func(l method.Level) float64 { return 1 - l.Next },
		"ddpm": func(l method.Level) float64 { return (1 - l.Next) / (1 - l.Alpha) * (1 - l.Alpha/l.Next) },
	} {
		s := resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: operator.HDR, Steps: steps,
			Values: map[string]parameter.Value{"sigma_rule": parameter.Word(rule), "t0": parameter.Number(300)}})
		plan, err := named(t, "ddiff").Plan(s, schedule, operator.Shape{Channels: 3, Height: 256, Width: 256})
		must(t, err)
		levels, err := method.Levels(schedule, steps)
		must(t, err)
		for i, st := range plan {
			want := 0.0
			if levels[i].Time > 300 {
				want = std(levels[i])
			}
			if got := st.Std["noise"]; !(abs(got*got-want) <= 1e-12) {
				t.Errorf("%s: variance %g at time %d, want %g", rule, got*got, st.Time, want)
			}
		}
		if last := levels[steps-1]; last.Next != 1 || last.Time != 0 {
			t.Errorf("last level %+v, want time 0 and ᾱ 1 after it", last)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
