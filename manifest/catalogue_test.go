package manifest

import (
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
)

// A method that cannot restore a task is refused when the campaign is read, with the method, the task and the methods that can.
func TestCheckRefusesMethodOfTask(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	for task, refused := range map[string]bool{"hdr": true, "gaussian_deblur": false} {
		campaign := "dataset: {path: .}\ntasks: [" + task + "]\nmethods: [ddiff, ddrm]\n"
		s, err := Parse("campaign.yaml", []byte(campaign), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Validate(Catalogue{Prior: &p.Description})
		if !refused && err != nil {
			t.Errorf("%s: %v", task, err)
		}
		const want = "ddrm cannot restore task hdr"
		if refused && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "methods that can: daps, ")) {
			t.Errorf("%s: error %v, want %q with the methods that can", task, err, want)
		}
	}
}

// Settings from which a method can make no plan reject the campaign, not each of its items.
func TestCheckRefusesSettingsWithoutPlan(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	for campaign, want := range map[string]string{
		"methods: [diffpir]\nsteps: 500\n":                                                                 "",
		"methods: [diffpir]\nsteps: 600\n":                                                                 "method diffpir: solver setting steps: 600 quadratic steps have equal times, use at most 500 or skip_type: uniform",
		"methods: [daps]\nsteps: 200\nsolver: {sigma_max: 0.2}\n":                                          "fewer than 200 times between the noise levels 0.2 and 0.1; use fewer, or a higher sigma_min or sigma_max",
		"methods: [daps]\nsolver: {tau: 1.0e-300}\n":                                                       "tau: 1e-300 is too extreme: float32 does not have the numbers of a step; choose a value nearer to the default, 0.01",
		"methods: [ddrm]\nsolver: {noise_std: 1.0e-39}\n":                                                  "noise_std: 1e-39 is too extreme",
		"methods: [ddrm]\nsigma: 1.0e-39\n":                                                                "noise_std: 1e-39 is too extreme",
		"methods: [ddrm]\nsigma: 0\n":                                                                      "",
		"methods: [dcdp]\nsolver: {lr: 1.0e+9}\n":                                                          "",
		"methods: [ddiff]\nsolver: {gamma0: 1e6, a: 1e6}\n":                                                "",
		"tasks: [{name: gaussian_deblur, steps: 600, solver: {skip_type: uniform}}]\nmethods: [diffpir]\n": "",
	} {
		if !strings.Contains(campaign, "tasks:") {
			campaign += "tasks: [gaussian_deblur]\n"
		}
		s, err := Parse("campaign.yaml", []byte("dataset: {path: .}\n"+campaign), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Validate(Catalogue{Prior: &p.Description})
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", campaign, err, want)
		}
	}
}

// A value without an effect on any item is refused in a new campaign; a stored one goes on.
func TestAdmissionRefusesIdleValues(t *testing.T) {
	t.Parallel()
	for campaign, want := range map[string]string{
		"tasks: [gaussian_deblur]\nsolver: {gamma0: 20}":                                                             "solver.gamma0: has no effect on gaussian_deblur with data_step: exact",
		"tasks: [gaussian_deblur, hdr]\nsolver: {gamma0: 20}":                                                        "",
		"tasks: [hdr, {name: gaussian_deblur, solver: {lambda: 2, gamma0: 20}}]":                                     "tasks[1].solver.gamma0: has no effect on gaussian_deblur",
		"tasks: [{name: gaussian_deblur, solver: {data_step: gradient}}]\nsolver: {gamma0: 20}":                      "",
		"tasks: [{name: hdr, methods: [diffpir]}, gaussian_deblur]\nmethods: [ddiff, diffpir]\nsolver: {gamma0: 20}": "solver.gamma0: has no effect on gaussian_deblur",
		"tasks: [gaussian_deblur]\nmethods: [ddiff, diffpir]\nsolver: {noise_std: 0.1}":                              "",
		"tasks: [{name: hdr, solver: {gamma0: 3}}, {name: gaussian_deblur, solver: {gamma0: 3}}]":                    "",                                                 // as the cells of a list of values
		"tasks: [{name: gaussian_deblur, solver: {gamma0: 8}}, {name: denoise, solver: {gamma0: 20}}]":               "tasks[1].solver.gamma0: has no effect on denoise", // 8 is the default
		"tasks: [hdr]\nsolver: {t_start: 500, start: rough}":                                                         "",                                                 // they state what holds without them
		"tasks: [gaussian_deblur]\npreset: ffhq\nsolver: {lambda: 4}":                                                "solver.lambda: has no effect on gaussian_deblur with data_step: gradient",
	} {
		s, err := Parse("campaign.yaml", []byte("dataset: {path: .}\n"+campaign+"\n"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Validate(Catalogue{New: true})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", campaign, err, want)
		}
		if err := s.Validate(Catalogue{}); err != nil {
			t.Errorf("%s, stored: %v", campaign, err)
		}
	}
}

// One check of a new campaign refuses what its prior does not admit and what has no effect.
func TestAdmit(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"steps: 1500":            "1500 is out of range, want 2 to 1000, the length of the prior's schedule",
		"solver: {gamma0: 20}":   "solver.gamma0: has no effect on gaussian_deblur",
		"methods: [ddiff, daps]": "",
	} {
		s, err := Parse("campaign.yaml", []byte("dataset: {path: .}\ntasks: [gaussian_deblur]\n"+settings+"\n"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Validate(Catalogue{Prior: &p.Description, New: true})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", settings, err, want)
		}
	}
}

// A method with a limit of its own takes more steps than the prior's schedule has times; others do not.
func TestStepsOfAMethod(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled) // its schedule has 1000 times
	if err != nil {
		t.Fatal(err)
	}
	for tasks, want := range map[string]string{
		"[{name: hdr, methods: [dmplug], steps: 5000}]":  "",
		"[{name: hdr, methods: [ddiff], steps: 5000}]":   "5000 is out of range, want 2 to 1000, the length of the prior's schedule",
		"[{name: hdr, methods: [dmplug], steps: 20001}]": "20001 is out of range, want 2 to 20000 for method dmplug",
		"[{name: hdr, steps: 5000}]":                     "want 2 to 1000",
	} {
		spec, err := Parse("c.yaml", []byte("dataset: {path: photos}\nmethods: [ddiff, dmplug]\ntasks: "+tasks+"\n"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = spec.Validate(Catalogue{Prior: &p.Description})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", tasks, err, want)
		}
	}
}
