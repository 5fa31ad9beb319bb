package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// restrictable knows three methods, with one parameter each and one in common.
func restrictable() Catalogue {
	p := Catalogue{Operators: operator.Set{{Name: "hdr"}, {Name: "inpaint_box"}}}
	for _, m := range [][2]string{{"ddiff", "gamma0"}, {"dps", "scale"}, {"daps", "chain_lr"}} {
		p.Methods = append(p.Methods, testMethod(m[0], parameter.List{{Name: m[1], Max: 10}, {Name: "shared", Max: 10}}, "natural"))
	}
	return p
}

// wantTasks checks the remaining tasks, or the one line of an error that begins with a text.
func wantTasks(t *testing.T, about string, got []string, err error, want []string, text string) {
	t.Helper()
	switch {
	case text != "":
		if err == nil || !strings.HasPrefix(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%serror %v, want %s", about, err, text)
		}
	case err != nil || !slices.Equal(got, want):
		t.Errorf("%serror %v, tasks %q, want %q", about, err, got, want)
	}
}

// Methods from the command line are a choice among those of the tasks.
func TestRestrictMethods(t *testing.T) {
	t.Parallel()
	const lists = "methods: [ddiff, dps]\ntasks:\n" +
		"  - {name: hdr, methods: [ddiff], solver: {gamma0: [1, 2]}}\n" +
		"  - {name: hdr, methods: [dps], solver: {scale: [3, 4]}}\n" +
		"  - {name: inpaint_box, methods: [ddiff, dps], solver: {scale: 5, gamma0: 6, shared: 7}}\n"
	for _, c := range []struct {
		text, methods string
		want          []string // name, methods and solver of each task
		err           string
	}{
		{lists, "dps", []string{`hdr dps {"scale":3}`, `hdr dps {"scale":4}`, `inpaint_box dps {"scale":5,"shared":7}`}, ""},
		{lists, "ddiff daps", []string{`hdr ddiff {"gamma0":1}`, `hdr ddiff {"gamma0":2}`, `inpaint_box ddiff {"gamma0":6,"shared":7}`}, ""},
		{lists, "daps", nil, "--method: no task of the campaign has the method daps; the tasks have ddiff, dps"},
		{lists, "daps dpss", nil, `--method: unknown method "dpss" (did you mean "dps"?)`},
		{lists, "", nil, "--method: is empty; name at least one method"},
		{"tasks: [hdr, {name: inpaint_box, methods: [ddiff]}]\n", "daps", []string{"hdr  {}"}, ""},
		{"methods: [ddiff, dps]\nsolver: {scale: 1}\ntasks: [hdr]\n", "ddiff", []string{"hdr  {}"}, ""},
		{"methods: [dps]\nsolver: {scale: 1}\ntasks: [hdr]\n", "ddiff", nil, `c.yaml:3: solver.scale: unknown parameter of ddiff "scale" (valid: gamma0, shared)`},
		{"methods: [ddiff, dps]\ntasks: [hdr, {name: hdr, methods: [dsp]}]\n", "dps", nil, `c.yaml:3: tasks[1].methods[0]: unknown method "dsp"`},
		// Errors about the tasks that are left have their lines.
		{lists + "  - {name: hdr, methods: [dps], solver: {unknown: 1}}\n", "dps", nil, `c.yaml:7: tasks[3].solver.unknown: unknown parameter of dps "unknown"`},
	} {
		s := parsed(t, "dataset: {path: x}\n"+c.text)
		s.Override("methods", "--method")
		err := s.RestrictMethods(strings.Fields(c.methods), restrictable())
		if err == nil {
			err = s.Validate(restrictable())
		}
		var got []string
		for _, task := range s.Tasks {
			data, _ := s.Effective(task).Solver.MarshalJSON()
			got = append(got, task.Name+" "+strings.Join(task.Methods, ",")+" "+string(data))
		}
		wantTasks(t, c.methods+" of\n"+c.text, got, err, c.want, c.err)
	}
}

// Rows of a list that name a task which is left out do not add it again with the settings of the campaign.
func TestRowsOfTasksThatAreLeftOut(t *testing.T) {
	t.Parallel()
	s, err := Parse("c.yaml", []byte("dataset: {path: x}\nmethods: [ddiff, dps]\n"+
		"tasks: [{name: inpaint_box, methods: [ddiff], params: {side: 8}}, {name: hdr, methods: [ddiff]}, {name: hdr, methods: [dps]}]\n"), "/")
	must(t, err)
	must(t, s.RestrictMethods([]string{"dps"}, restrictable()))
	stored, err := s.YAML("")
	must(t, err)
	again, err := Parse("again.yaml", stored, "/")
	must(t, err)
	for _, s := range []*Spec{s, again} {
		for task, want := range map[string]int{"": 1, "hdr": 1, "inpaint_box": 0, "denoise": 1} {
			row := Row{Name: "a", Overrides: Overrides{Task: task}, Err: errors.New("unreadable")}
			_, items := NewExpander(s, "prior", testResolve).Expand(row, Probe{}, 0)
			if n := ItemsPerRow(row, s); n != want || len(items) != want || len(RowTasks(row, s)) != want {
				t.Errorf("task %q: %d items, want %d: %+v", task, n, want, items)
			}
		}
	}
}

// Tasks from the command line keep the settings that the file has for them.
func TestChooseTasks(t *testing.T) {
	t.Parallel()
	const lists = "methods: [ddiff, dps]\nsigma: [0.1, 0.2]\ntasks:\n" +
		"  - {name: hdr, methods: [ddiff], solver: {gamma0: 1}}\n" +
		"  - {name: inpaint_box, methods: [ddiff]}\n" +
		"  - {name: hdr, methods: [dps], solver: {scale: 3}}\n"
	for _, c := range []struct {
		text, tasks, methods string
		want                 []string // name, noise, methods and solver of each task
		err                  string
	}{
		{lists, "hdr", "", []string{`hdr 0.1 ddiff {"gamma0":1}`, `hdr 0.2 ddiff {"gamma0":1}`, `hdr 0.1 dps {"scale":3}`, `hdr 0.2 dps {"scale":3}`}, ""},
		{lists, "hdr", "dps", []string{`hdr 0.1 dps {"scale":3}`, `hdr 0.2 dps {"scale":3}`}, ""},
		{"tasks: [{name: hdr, solver: {gamma0: 1}}]\n", "inpaint_box hdr", "", []string{`inpaint_box 0.05  {}`, `hdr 0.05  {"gamma0":1}`}, ""},
		{"tasks: [hdr]\n", "inpaint_box", "", []string{"inpaint_box 0.05  {}"}, ""},
		{lists, "hdr hdr", "", nil, `--task: task "hdr" is repeated; remove one`},
		{lists, "", "", nil, "--task: is missing or empty; name at least one task"},
		{lists, "hdr x", "", nil, `--task: unknown task "x"`},
		// Errors name the flag or the line, also if --method leaves tasks out.
		{lists, "hdr x", "dps", nil, `--task: unknown task "x"`},
		{"tasks: [hdr, {name: inpaint_box, solver: {unknown: 1}}]\n", "inpaint_box", "", nil, `c.yaml:2: tasks[0].solver.unknown: unknown parameter of ddiff "unknown"`},
	} {
		s := parsed(t, "dataset: {path: x}\n"+c.text)
		var chosen []item.Task
		for _, name := range strings.Fields(c.tasks) {
			chosen = append(chosen, item.Task{Name: name})
		}
		err := s.ChooseTasks(chosen, "--task")
		if err == nil && c.methods != "" {
			err = s.RestrictMethods(strings.Fields(c.methods), restrictable())
		}
		if err == nil {
			err = s.Validate(restrictable())
		}
		var got []string
		for _, task := range s.Tasks {
			e := s.Effective(task)
			data, _ := e.Solver.MarshalJSON()
			got = append(got, fmt.Sprint(task.Name, " ", float64(*e.Sigma), " ", strings.Join(task.Methods, ","), " ", string(data)))
		}
		wantTasks(t, c.tasks+" of\n"+c.text, got, err, c.want, c.err)
	}
}

// A task whose methods are all unknown has no further error about its settings.
func TestSettingsOfUnknownMethods(t *testing.T) {
	t.Parallel()
	s := parsed(t, "dataset: {path: x}\ntasks: [{name: hdr, methods: [dps], solver: {scale: 1}}]\n")
	if err := s.Validate(restrictable()); err == nil || strings.Contains(err.Error(), "parameter") {
		t.Errorf("error %v, want only that of the method", err)
	}
}

// A task is left out or not.
func TestLeftOutTaskIsNoTask(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"left_out: [hdr]\n":              "",
		"left_out: [hdr, inpaint_box]\n": `c.yaml:3: left_out[1]: "inpaint_box" is in tasks, too; remove one of them`,
	} {
		s := parsed(t, "dataset: {path: x}\ntasks: [{name: inpaint_box}]\n"+text)
		if err := s.Validate(restrictable()); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Rows that name a task of the file which was not chosen have no items; chosen tasks are not left out any more.
func TestRowsOfTasksThatAreNotChosen(t *testing.T) {
	t.Parallel()
	s := parsed(t, "dataset: {path: x}\ntasks: [hdr, inpaint_box]\nleft_out: [denoise, colorize]\n")
	must(t, s.ChooseTasks([]item.Task{{Name: "hdr"}, {Name: "denoise"}}, "--task"))
	if want := []string{"colorize", "inpaint_box"}; !slices.Equal(s.LeftOut, want) {
		t.Errorf("left out %q, want %q", s.LeftOut, want)
	}
	for task, want := range map[string]int{"": 2, "hdr": 1, "denoise": 1, "inpaint_box": 0, "phase_retrieval": 1} {
		if n := ItemsPerRow(Row{Overrides: Overrides{Task: task}}, s); n != want {
			t.Errorf("task %q: %d items, want %d", task, n, want)
		}
	}
}
