package manifest

import (
	"fmt"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// checkError wants a text in an error; "" wants no error.
func checkError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func fullCatalogue() Catalogue {
	number := func(name string, most float64) parameter.Parameter { return parameter.Parameter{Name: name, Max: most} }
	rule := parameter.Parameter{Name: "sigma_rule", Choices: []string{"ddpm", "full"}}
	return Catalogue{
		Operators: operator.Set{
			{Name: "super_resolution", Parameters: parameter.List{number("factor", 16)}},
			{Name: "gaussian_deblur", Parameters: parameter.List{number("size", 255), number("std", 64)}},
			{Name: "hdr"},
		},
		Methods: method.Set{
			testMethod("ddiff", parameter.List{number("gamma0", 100), number("a", 10), rule}, "ffhq", "imagenet", "natural"),
			testMethod("hqs", parameter.List{number("gamma0", 50), number("zeta", 1)}),
		},
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, yaml, want string }{
		{"all is well", "dataset: {path: x}\ntasks: [hdr, {name: gaussian_deblur, params: {std: 2}}]\n", ""},
		{"one task with two noises", "dataset: {path: x}\ntasks: [hdr, {name: hdr, sigma: 0.1}]\n", ""},
		{"nothing given", "name: a\n", "c.yaml: dataset.path: is missing; give a directory, a glob, or a .csv or .jsonl list\n" +
			"c.yaml: tasks: is missing or empty; name at least one task"},
		{"empty lists", "dataset: {path: x}\ntasks: []\nmethods: []\n", "c.yaml:2: tasks: is missing or empty; name at least one task\n" +
			"c.yaml:3: methods: is empty; name at least one method or remove the field"},
		{"task", "dataset: {path: x}\ntasks:\n- hdr\n- super_resolutoin\n", `c.yaml:4: tasks[1]: unknown task "super_resolutoin" (did you mean "super_resolution"?)`},
		{"task far from all", "dataset: {path: x}\ntasks: [colourise]\n", `c.yaml:2: tasks[0]: unknown task "colourise" (valid: gaussian_deblur, hdr, super_resolution)`},
		{"task without a name", "dataset: {path: x}\ntasks: [{sigma: 0.1}]\n", "c.yaml:2: tasks[0]: has no name; name a task"},
		{"parameter", "dataset: {path: x}\ntasks:\n- name: super_resolution\n  params:\n    factr: 4\n", `c.yaml:5: tasks[0].params.factr: unknown parameter of super_resolution "factr" (did you mean "factor"?)`},
		{"parameter out of range", "dataset: {path: x}\ntasks:\n- name: gaussian_deblur\n  params:\n    std: -3\n", "c.yaml:5: tasks[0].params.std: -3 is outside [0, 64]"},
		{"solver", "dataset: {path: x}\ntasks: [hdr]\nsolver: {gamma0: 100, sigma_rule: full}\n", ""},
		{"solver name", "dataset: {path: x}\ntasks: [hdr]\nsolver: {gama0: 1}\n", `c.yaml:3: solver.gama0: unknown parameter of ddiff "gama0" (did you mean "gamma0"?)`},
		{"solver of another method", "dataset: {path: x}\ntasks: [hdr]\nsolver: {zeta: 1}\n", `c.yaml:3: solver.zeta: unknown parameter of ddiff "zeta" (valid: gamma0, a, sigma_rule)`},
		{"solver of one method", "dataset: {path: x}\ntasks: [hdr]\nmethods: [ddiff, hqs]\nsolver: {zeta: 1, a: 2}\n", ""},
		{"solver refused by one method", "dataset: {path: x}\ntasks: [hdr]\nmethods: [ddiff, hqs]\nsolver: {gamma0: 70}\n", "c.yaml:4: solver.gamma0: 70 is outside [0, 50]"},
		{"solver number", "dataset: {path: x}\ntasks: [hdr]\nsolver:\n  a: .nan\n", "c.yaml:4: solver.a: NaN is outside [0, 10]"},
		{"solver word", "dataset: {path: x}\ntasks: [{name: hdr, solver: {sigma_rule: ddim}}]\n", `c.yaml:2: tasks[0].solver.sigma_rule: unknown value "ddim" (did you mean "ddpm"?)`},
		{"solver word for a number", "dataset: {path: x}\ntasks: [hdr]\nsolver: {a: many}\n", "c.yaml:3: solver.a: \"many\" is a text, want [0, 10]"},
		{"solver number for a word", "dataset: {path: x}\ntasks: [hdr]\nsolver: {sigma_rule: 1}\n", "c.yaml:3: solver.sigma_rule: 1 is not ddpm or full"},
		{"same task twice", "dataset: {path: x}\ntasks: [hdr, {name: hdr, sigma: 0.05}]\n", `c.yaml:2: tasks[1]: task "hdr" is repeated with the same settings; remove one`},
		{"method", "dataset: {path: x}\ntasks: [hdr]\nmethods: [ddif]\n", `c.yaml:3: methods[0]: unknown method "ddif" (did you mean "ddiff"?)`},
		{"same method twice", "dataset: {path: x}\ntasks: [hdr]\nmethods: [ddiff, hqs, ddiff]\n", `c.yaml:3: methods[2]: method "ddiff" is repeated; remove one`},
		{"preset", "dataset: {path: x}\ntasks: [hdr]\npreset: image_net\n", `c.yaml:3: preset: unknown preset "image_net" (did you mean "imagenet"?)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("c.yaml", []byte(tc.yaml), "/base")
			must(t, err)
			got := ""
			if err := s.Validate(fullCatalogue()); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// TestProblems: fields that cannot be read, and wrong names in the others, are reported together.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, yaml, want string }{
		{"both kinds", "dataset: {path: x}\ntasks: [hdrr]\nsteps: many\nmethods: [ddif]\n",
			"c.yaml:2: tasks[0]: unknown task \"hdrr\" (did you mean \"hdr\"?)\nc.yaml:3: steps: want an integer, got \"many\"\n" +
				"c.yaml:4: methods[0]: unknown method \"ddif\" (did you mean \"ddiff\"?)"},
		{"what follows from a field that could not be read", "dataset: {pth: x}\ntasks: [[hdr]]\nmethods: ddiff\n",
			"c.yaml:1: dataset: unknown field \"pth\" (did you mean \"path\"?)\nc.yaml:2: tasks[0]: want a mapping of fields, got a list\n" +
				"c.yaml:3: methods: want a list, as in [first, second], got \"ddiff\""},
		{"a field of no name", "stpes: 3\ndataset: {path: x}\ntasks: [hdr]\npreset: image_net\n",
			"c.yaml:1: unknown field \"stpes\" (did you mean \"steps\"?)\nc.yaml:4: preset: unknown preset \"image_net\" (did you mean \"imagenet\"?)"},
		{"no YAML", "name: *x\n", "c.yaml: not valid YAML: unknown anchor 'x' referenced"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("c.yaml", []byte(tc.yaml), "/base")
			if got := s.Problems(err, fullCatalogue()); got == nil || got.Error() != tc.want {
				t.Errorf("got:\n%v\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// A spec built in code, for example from flags, has no file and no lines.
func TestValidateWithoutFile(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Name, s.Dataset.Path, s.Tasks = "flags", "/x", []item.Task{{Name: "hdr"}}
	if err := s.Validate(fullCatalogue()); err != nil {
		t.Fatalf("a good spec: %v", err)
	}
	s.Steps, s.Solver = 1, parameter.Values{"a": {Number: -1}}
	want := "steps: 1 is out of range, want at least 2, or 0 for the default\nsolver.a: -1 is outside [0, 10]"
	if err := s.Validate(fullCatalogue()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	s.Steps, s.Solver = 0, nil
	s.Tasks = []item.Task{{Name: "hdr", Steps: 1}, {Name: "super_resolution", Steps: 1}}
	want = "tasks[0].steps: 1 is out of range, want at least 2, or 0 for the default\n" +
		"tasks[1].steps: 1 is out of range, want at least 2, or 0 for the default"
	if err := s.Validate(fullCatalogue()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The values at the ends of the ranges are accepted, those beyond are not.
func TestValidateLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"dataset: {path: x, size: 8, limit: 0}": "", "dataset: {path: x, size: 4096, limit: 2147483647}": "",
		"dataset: {path: x, size: 4097}": "dataset.size: 4097 is out of range",
		"steps: 2\nsigma: 1\nruns: 1000": "", "sigma: 0\nruns: 1": "", "sigma: 1.001": "sigma: 1.001 is out of range", "runs: 1001": "runs: 1001 is out of range",
		"batch: 1024\nattempts: 100": "", "attempts: 101": "attempts: 101 is out of range",
		"name: " + strings.Repeat("x", 100): "",
		"deadline: 2026-12-01T08:00:00Z":    "", "deadline: '2026-12-01T09:00:00.5+01:00'": "",
		"deadline: tomorrow": `deadline: "tomorrow" is no time; give one with its zone`, "deadline: 2026-12-01": "deadline: \"2026-12-01\" is no time", "deadline: 2026-12-01T08:00:00": "deadline: \"2026-12-01T08:00:00\" is no time",
		"notify: https://hooks.example.org/a": "", "notify: http://127.0.0.1:8080/a": "",
		"notify: http://hooks.example.org/a": "notify: is not an https address", "notify: hooks.example.org": "notify: is not an https address",
		"budget: {items: 5, seconds: 1.5, cost: 2, soft: 1}": "", "budget: {seconds: -1}": "budget.seconds: -1 is outside",
		"budget: {soft: 1.1}": "budget.soft: 1.1 is outside", "budget: {items: 1.5}": "budget.items: want an integer", "budget: {hours: 1}": "budget: unknown field",
		"notify: https://user:word@hooks.example.org": "notify: the address contains credentials",
	} {
		if !strings.Contains(text, "dataset") {
			text += "\ndataset: {path: x}"
		}
		_, err := Parse("c.yaml", []byte(text+"\ntasks: [hdr]"), "/")
		checkError(t, text, err, map[bool]string{false: "c.yaml:1: " + want}[want == ""])
	}
	for length, want := range map[int]string{700_000: "", 700_001: "dataset.path: has 700001 bytes, at most 700000 are allowed"} {
		s := testSpec()
		s.Methods, s.Dataset.Path = nil, strings.Repeat("x", length)
		s.Tasks = []item.Task{{Name: "gaussian_deblur", Params: map[string]float64{"size": 5}}}
		s.Methods = []string{"ddiff"}
		checkError(t, want, s.Validate(fullCatalogue()), want)
	}
}

// A prior restricts the sizes and the number of steps.
func TestValidateForPrior(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		size, steps int
		fit         item.Fit
		want        string
	}{
		{256, 1000, item.FitCenterCrop, ""},
		{256, 1001, item.FitCenterCrop, "steps: 1001 is out of range, want 2 to 1000, the length of the prior's schedule"},
		{47, 0, item.FitPad, ""},
		{47, 0, item.FitCenterCrop, "dataset.size: 47 is not a multiple of 32, as the prior requires; use 32"},
		{48, 0, item.FitResize, "dataset.size: 48 is not a multiple of 32, as the prior requires; use 64"},
		{9, 0, item.FitResize, "dataset.size: 9 is not a multiple of 32, as the prior requires; use 32"},
	} {
		s := Default()
		s.Name, s.Dataset.Path, s.Tasks = "x", "/x", []item.Task{{Name: "hdr"}}
		s.Dataset.Size, s.Dataset.Fit, s.Steps = tc.size, tc.fit, tc.steps
		p, err := prior.Open(prior.Bundled) // its schedule has 1000 times
		must(t, err)
		p.Card.MultipleOf = 32
		checkError(t, fmt.Sprint(tc), s.Validate(Catalogue{Prior: &p.Description}), tc.want)
	}
}
