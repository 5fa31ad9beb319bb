package manifest

import "testing"

func testVocabulary() Vocabulary {
	return Vocabulary{
		Tasks: map[string][]string{
			"super_resolution": {"factor"},
			"gaussian_deblur":  {"size", "std"},
			"hdr":              nil,
		},
		Methods: []string{"ddiff", "hqs"},
		Presets: []string{"ffhq", "imagenet", "natural"},
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
		{"same task twice", "dataset: {path: x}\ntasks: [hdr, {name: hdr, sigma: 0.05}]\n", `c.yaml:2: tasks[1]: task "hdr" is repeated with the same settings; remove one`},
		{"method", "dataset: {path: x}\ntasks: [hdr]\nmethods: [ddif]\n", `c.yaml:3: methods[0]: unknown method "ddif" (did you mean "ddiff"?)`},
		{"same method twice", "dataset: {path: x}\ntasks: [hdr]\nmethods: [ddiff, hqs, ddiff]\n", `c.yaml:3: methods[2]: method "ddiff" is repeated; remove one`},
		{"preset", "dataset: {path: x}\ntasks: [hdr]\npreset: image_net\n", `c.yaml:3: preset: unknown preset "image_net" (did you mean "imagenet"?)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("c.yaml", []byte(tc.yaml), "/base")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.Validate(testVocabulary()); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// A spec that a program makes, from flags say, has no file and no lines.
func TestValidateWithoutFile(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Name, s.Dataset.Path, s.Tasks = "flags", "/x", []TaskSpec{{Name: "hdr"}}
	if err := s.Validate(testVocabulary()); err != nil {
		t.Fatalf("a good spec: %v", err)
	}
	s.Steps, s.Solver.T0 = 1, ptr(-1)
	want := "steps: 1 is out of range, want 2 to 1000, or 0 for the default\nsolver.t0: -1 is out of range, want 0 to 1000"
	if err := s.Validate(testVocabulary()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
