package manifest

import "testing"

// What changes the work of an item changes that of its campaign; images, noise and runs do not.
func TestWork(t *testing.T) {
	t.Parallel()
	work := func(text string) string {
		t.Helper()
		s, err := Parse("c.yaml", []byte(text), "/")
		must(t, err)
		return s.Work()
	}
	const base = "tasks: [hdr, {name: super_resolution, params: {factor: 4}}]\nmethods: [ddiff, dps]\n"
	want := work("dataset: {path: /a, size: 64}\n" + base)
	for text, same := range map[string]bool{
		"dataset: {path: /b, size: 64}\nsigma: 0.2\nseed: 5\nname: x\nruns: 3\nbatch: 2\nattempts: 4\nbudget: {items: 5}\nselect: mean\n" + base:         true,
		"dataset: {path: /a, size: 64}\nmethods: [ddiff, dps]\ntasks: [{name: hdr, sigma: 0.1, runs: 2}, {name: super_resolution, params: {factor: 4}}]": true,
		"dataset: {path: /a, size: 64}\nmethods: [ddiff, dps]\ntasks: [hdr, {name: super_resolution, params: {factor: 2}}]":                              false,
		"dataset: {path: /a, size: 32}\n" + base:                        false,
		"dataset: {path: /a, size: 64}\nsteps: 20\n" + base:             false,
		"dataset: {path: /a, size: 64}\nsolver: {gamma0: 3}\n" + base:   false,
		"dataset: {path: /a, size: 64}\npreset: fast\n" + base:          false,
		"dataset: {path: /a, size: 64}\nprior: /p.onnx\n" + base:        false,
		"dataset: {path: /a, size: 64}\nprecision: float16\n" + base:    false,
		"dataset: {path: /a, size: 64}\ntile: 64\n" + base:              false,
		"dataset: {path: /a, size: 64}\nmethods: [ddiff]\ntasks: [hdr]": false,
	} {
		if got := work(text); got == "" || (got == want) != same {
			t.Errorf("%s: %s, want the work of the first: %t", text, got, same)
		}
	}
	if got := work("dataset: {path: /a, size: 64, fit: pad}\n" + base); got != "" {
		t.Errorf("images of different sizes: %s", got)
	}
}
