package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestMethodsDefaults: ddiff methods prints the steps of each method, and no default for a parameter that must be stated.
func TestMethodsDefaults(t *testing.T) {
	t.Parallel()
	text := ddiff(t, "methods")
	wantCode(t, text, 0)
	if want := "ddiff methods --json those of all methods."; !strings.Contains(text.stdout, want) {
		t.Errorf("the end lacks %q", want)
	}
	for method, want := range map[string]string{"dmplug": "  5000 steps by default, at most 20000\n", "dps": "  1000 steps by default\n"} {
		_, section, _ := strings.Cut("\n"+text.stdout, "\n"+method+": ")
		section, _, _ = strings.Cut(section, "\n\n")
		if !strings.Contains(section, want) {
			t.Errorf("section of %s lacks %q:\n%s", method, want, section)
		}
	}
	for _, line := range strings.Split(text.stdout[strings.Index(text.stdout, "latent_ddiff: "):], "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "gamma0" && f[3] != "none" {
			t.Errorf("latent_ddiff has a default of gamma0: %s", line)
		}
	}

	var methods []struct {
		Name       string
		MaxSteps   int `json:"max_steps"`
		Parameters []struct {
			Name    string
			Default any
		}
	}
	must(t, json.Unmarshal([]byte(ddiff(t, "methods", "--json").stdout), &methods))
	for _, m := range methods {
		if (m.MaxSteps != 0) != (m.Name == "dmplug") {
			t.Errorf("%s has at most %d steps", m.Name, m.MaxSteps)
		}
		for _, p := range m.Parameters {
			if (p.Default == nil) != (m.Name == "latent_ddiff" && p.Name == "gamma0") {
				t.Errorf("default of %s of %s: %v", p.Name, m.Name, p.Default)
			}
		}
	}
}
