package shard

import (
	"strings"
	"testing"

	"ddiff/manifest"
)

// A method with a limit of its own takes more steps than the prior's schedule has times; others do not.
func TestStepsOfAMethod(t *testing.T) {
	t.Parallel()
	v := Catalogue{}.Program()
	v.MaxSteps = 1000
	for tasks, want := range map[string]string{
		"[{name: hdr, methods: [dmplug], steps: 5000}]":  "",
		"[{name: hdr, methods: [ddiff], steps: 5000}]":   "5000 is out of range, want 2 to 1000, the length of the prior's schedule",
		"[{name: hdr, methods: [dmplug], steps: 20001}]": "20001 is out of range, want 2 to 20000 for method dmplug",
		"[{name: hdr, steps: 5000}]":                     "want 2 to 1000",
	} {
		spec, err := manifest.Parse("c.yaml", []byte("dataset: {path: photos}\nmethods: [ddiff, dmplug]\ntasks: "+tasks+"\n"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = spec.Validate(v)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", tasks, err, want)
		}
	}
}
