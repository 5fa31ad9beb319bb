package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// cellsOf parses the tasks of a campaign and prints one line for each.
func cellsOf(t *testing.T, text string) ([]string, error) {
	t.Helper()
	s, err := Parse("c.yaml", []byte("dataset: {path: x}\n"+text), "/")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, task := range s.Tasks {
		e := s.Effective(task)
		line := fmt.Sprintf("%s %v σ=%v steps=%d", e.Name, e.Params, *e.Sigma, e.Steps)
		if len(e.Solver) > 0 {
			data, err := e.Solver.MarshalJSON()
			must(t, err)
			line += " " + string(data)
		}
		out = append(out, line)
	}
	return out, nil
}

func TestSweeps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"no list", "tasks: [hdr]", []string{"hdr map[] σ=0.05 steps=0"}},
		{"noise of the campaign", "sigma: [0.02, 0.1]\ntasks: [hdr, {name: motion_deblur, sigma: 0.3}]", []string{
			"hdr map[] σ=0.02 steps=0", "hdr map[] σ=0.1 steps=0", "motion_deblur map[] σ=0.3 steps=0",
		}},
		{"params, the last list fastest", "tasks: [{name: super_resolution, params: {factor: [2, 8]}, steps: [20, 50]}]", []string{
			"super_resolution map[factor:2] σ=0.05 steps=20", "super_resolution map[factor:2] σ=0.05 steps=50",
			"super_resolution map[factor:8] σ=0.05 steps=20", "super_resolution map[factor:8] σ=0.05 steps=50",
		}},
		{"solver of the campaign and of a task", "solver: {a: 1, gamma0: [10, 20]}\ntasks: [{name: hdr, solver: {b: [1, 2]}}, {name: hdr, solver: {gamma0: 5}}]", []string{
			`hdr map[] σ=0.05 steps=0 {"gamma0":10,"a":1,"b":1}`, `hdr map[] σ=0.05 steps=0 {"gamma0":20,"a":1,"b":1}`,
			`hdr map[] σ=0.05 steps=0 {"gamma0":10,"a":1,"b":2}`, `hdr map[] σ=0.05 steps=0 {"gamma0":20,"a":1,"b":2}`,
			`hdr map[] σ=0.05 steps=0 {"gamma0":5,"a":1}`,
		}},
		{"words", "solver: {sigma_rule: [ddpm, eta]}\ntasks: [hdr]", []string{
			`hdr map[] σ=0.05 steps=0 {"sigma_rule":"ddpm"}`, `hdr map[] σ=0.05 steps=0 {"sigma_rule":"eta"}`,
		}},
	} {
		got, err := cellsOf(t, tt.text)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: error %v, got\n%s\nwant\n%s", tt.name, err, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// TestSweepEqualsTasks: a list is short for several tasks, with the same campaign id and items.
func TestSweepEqualsTasks(t *testing.T) {
	t.Parallel()
	short := parsed(t, "dataset: {path: x}\ntasks: [{name: hdr, sigma: [0.1, 0.2]}]")
	long := parsed(t, "dataset: {path: x}\ntasks: [{name: hdr, sigma: 0.1}, {name: hdr, sigma: 0.2}]")
	if short.ID("") != long.ID("") {
		t.Errorf("ids %s and %s differ", short.ID(""), long.ID(""))
	}
}

func TestSweepErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"sigma: []\ntasks: [hdr]", "c.yaml:2: tasks[0].sigma: is an empty list; give a value"},
		{"tasks:\n- name: hdr\n  sigma: [0.1, 0.1]", "c.yaml:4: tasks[0].sigma: repeats 0.1; remove one"},
		{"tasks:\n- name: hdr\n  sigma: [0.1, much]", `c.yaml:4: tasks[1].sigma: want a number or auto, got "much"`},
		{"tasks:\n- name: hdr\n  steps: [[20]]", "c.yaml:4: tasks[0].steps: want an integer, got a list"},
		{"tasks:\n- name: hdr\n  sigma: [0.1, 7]", "c.yaml:4: tasks[1].sigma: 7 is out of range"},
		{"sigma: [0.1, 0.2]\nsigma: 0.3\ntasks: [hdr]", `c.yaml:3: field "sigma" is repeated, first on line 2; remove one`},
		{"solver:\n  a: [1, 2]\n  a: 3\ntasks: [hdr]", `c.yaml:4: solver: field "a" is repeated, first on line 3; remove one`},
		{"solver: {a: 1, a: [2], a: [3]}\ntasks: [hdr]", `solver: field "a" is repeated`},
		{"seed: [1, 2]\ntasks: [hdr]", "c.yaml:2: seed: want an integer"},
		{"params: {factor: [1]}\ntasks: [hdr]", `unknown field "params"`},
		{"tasks: hdr", "want a list"},
		{"sigma: &a [0.1]\ntasks: [hdr]", "anchors and aliases"},
		{"sigma: [" + strings.Repeat("0.1, ", 5000) + "0.2]\ntasks: [hdr]", "repeats 0.1"},
	} {
		if _, err := cellsOf(t, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: error %.300v, want %q", tt.text, err, tt.want)
		}
	}
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprint(i+2))
	}
	list := "[" + strings.Join(many, ", ") + "]"
	if _, err := cellsOf(t, "steps: "+list+"\nsolver: {gamma0: "+list+"}\ntasks: [hdr]"); err == nil || !strings.Contains(err.Error(), "more than 4096 tasks") {
		t.Errorf("4900 cells: error %v", err)
	}
	half := "[" + strings.Join(many[:64], ", ") + "]"
	cells := func(text string) string {
		return "tasks:\n- name: hdr\n  steps: " + half + "\n  solver: {gamma0: " + text + "}\n"
	}
	if got, err := cellsOf(t, cells(half)); err != nil || len(got) != MaxCells {
		t.Errorf("%d cells, error %v", len(got), err)
	}
	if _, err := cellsOf(t, cells(list)); err == nil || !strings.Contains(err.Error(), "c.yaml:5: tasks[0].solver.gamma0: the lists give more than 4096 tasks") {
		t.Errorf("4480 cells of a task: error %v", err)
	}
	two := cells("["+strings.Join(many[:63], ", ")+"]") + "- name: motion_deblur\n  steps: " + half + "\n"
	if got, err := cellsOf(t, two); err != nil || len(got) != MaxCells {
		t.Errorf("%d cells of two tasks, error %v", len(got), err)
	}
	if _, err := cellsOf(t, two+"- inpainting\n"); err == nil || !strings.Contains(err.Error(), "tasks[2]: the lists give more than 4096 tasks") {
		t.Errorf("4097 cells: error %v", err)
	}
}

// TestSweepReportsProblemOnce: a problem of a line that several cells have is one line.
func TestSweepReportsProblemOnce(t *testing.T) {
	t.Parallel()
	_, err := cellsOf(t, "solver: {gamma0: [10, 20, 40]}\ntasks:\n  - name: hdr\n    steps: -1\n  - name: motion_deblur\n    steps: -1\n")
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "c.yaml:5: tasks[0].steps") || !strings.Contains(err.Error(), "c.yaml:7: ") {
		t.Errorf("error %v, want one line for each of two tasks", err)
	}
	_, err = cellsOf(t, "sigma: [0.1, 0.1]\ntasks: [hdr]\n")
	if err == nil || strings.Contains(err.Error(), "want a number") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line about the repeated value", err)
	}
}
