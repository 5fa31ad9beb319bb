package manifest_test

import (
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestEqualRuns: only several runs whose plan draws no noise are named, each method and task once.
func TestEqualRuns(t *testing.T) {
	t.Parallel()
	known := manifest.Catalogue{Methods: method.Builtin(), Operators: operator.Builtin()}
	for text, want := range map[string]string{
		"tasks: [denoise]\nmethods: [ddiff, dpir]":                                               "",
		"tasks: [denoise, hdr, phase_retrieval]\nruns: 2":                                        "ddiff in denoise",
		"tasks: [denoise]\nmethods: [ddiff, dpir, diffpir, dps]\nruns: 4":                        "ddiff in denoise, dpir in denoise",
		"tasks: [denoise]\nruns: 2\nsolver: {data_step: exact, noise: full}":                     "",
		"tasks: [denoise]\nruns: 2\nsigma: [0.01, 0.05]":                                         "ddiff in denoise",
		"tasks: [colorize]\nruns: 2\npreset: gradient":                                           "",
		"tasks: [{name: denoise, runs: 3}, {name: demosaic, runs: 1}]\nmethods: [diffpir, dpir]": "dpir in denoise",
	} {
		spec, err := manifest.Parse("c", []byte("dataset: {path: /photos}\n"+text+"\n"), "/")
		if err == nil {
			err = spec.Validate(known)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		named, _, _ := strings.Cut(strings.TrimPrefix(known.EqualRuns(spec), "all runs are equal of "), ":")
		if named != want {
			t.Errorf("%s: %q, want %q", text, named, want)
		}
	}
}
