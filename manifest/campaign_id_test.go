package manifest

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

func TestCampaignIDGolden(t *testing.T) {
	t.Parallel()
	s, err := Parse("night.yaml", []byte(fullSpec), "/data/campaigns")
	must(t, err)
	// A change here orphans every interrupted campaign: it must be meant.
	if got, want := s.ID(""), "night-photos-6447da35"; got != want {
		t.Errorf("ID = %s, want %s", got, want)
	}
	// The id in records and windows that coordinators of earlier versions have written, and write during an upgrade.
	s, err = Parse("night.yaml", []byte("name: night\ndataset: {path: photos, size: 64}\ntasks: [{name: hdr, sigma: 0.05}]\nmethods: [ddiff]\n"+
		"solver: {gamma0: 8, b: 0.5}\n"), "/data")
	must(t, err)
	if got, want := s.ID(""), "night-6969f1af"; got != want {
		t.Errorf("ID = %s, want %s", got, want)
	}
}

func TestCampaignID(t *testing.T) {
	t.Parallel()
	base := func() *Spec {
		s, err := Parse("night.yaml", []byte(fullSpec), "/data/campaigns")
		must(t, err)
		return s
	}
	want := base().ID("")
	for name, change := range map[string]func(*Spec){
		"output":   func(s *Spec) { s.Output = "elsewhere" },
		"batch":    func(s *Spec) { s.Batch = 1 },
		"attempts": func(s *Spec) { s.Attempts = 9 },
		"pool":     func(s *Spec) { s.Pool = "gpu" },
		"deadline": func(s *Spec) { s.Deadline = "2026-12-01T08:00:00Z" },
		"notify":   func(s *Spec) { s.Notify = "https://hooks.example.org" },
		"budget":   func(s *Spec) { s.Budget.Seconds = 60 },
		"file":     func(s *Spec) { s.file, s.lines = "", nil },
	} {
		s := base()
		change(s)
		if got := s.ID(""); got != want {
			t.Errorf("%s changes the campaign from %s to %s", name, want, got)
		}
	}
	seen := map[string]string{want: "the original"}
	for name, change := range map[string]func(*Spec){
		"name":     func(s *Spec) { s.Name = "night photos" },
		"path":     func(s *Spec) { s.Dataset.Path = "/other" },
		"size":     func(s *Spec) { s.Dataset.Size = 64 },
		"limit":    func(s *Spec) { s.Dataset.Limit = 0 },
		"tasks":    func(s *Spec) { s.Tasks = s.Tasks[:1] },
		"param":    func(s *Spec) { s.Tasks[1].Params["factor"] = 2 },
		"methods":  func(s *Spec) { s.Methods = s.Methods[:1] },
		"preset":   func(s *Spec) { s.Preset = "imagenet" },
		"prior":    func(s *Spec) { s.Prior = PriorBundled },
		"steps":    func(s *Spec) { s.Steps = 0 },
		"sigma":    func(s *Spec) { s.Sigma = 0 },
		"seed":     func(s *Spec) { s.Seed = 0 },
		"runs":     func(s *Spec) { s.Runs = 1 },
		"solver":   func(s *Spec) { delete(s.Solver, "t0") },
		"t0":       func(s *Spec) { s.Solver["t0"] = parameter.Value{Number: 1} },
		"gradient": func(s *Spec) { delete(s.Solver, "gradient") },
	} {
		s := base()
		change(s)
		id := s.ID("")
		if other, ok := seen[id]; ok {
			t.Errorf("%s gives the same campaign as %s: %s", name, other, id)
		}
		seen[id] = name
	}
}

// The order of names in the JSON form is part of campaign ids.
func TestValuesJSON(t *testing.T) {
	t.Parallel()
	v := parameter.Values{
		"zeta": {Number: 0.3}, "a": {Number: 3.3}, "lambda": {Number: 7}, "gradient": {Word: "norm"}, "b": {}, "t0": {Word: "none"},
		"gamma0": {Number: 50}, "t_gamma": {Number: 300}, "sigma_rule": {Word: "ddpm"},
	}
	data, err := json.Marshal(v)
	const want = `{"gamma0":50,"t_gamma":300,"a":3.3,"b":0,"t0":"none","sigma_rule":"ddpm","gradient":"norm","lambda":7,"zeta":0.3}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v; want %s", data, err, want)
	}
	var back parameter.Values
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("read back as %v, %v; want %v", back, err, v)
	}
	if data, err := json.Marshal(parameter.Values(nil)); err != nil || string(data) != "{}" {
		t.Errorf("nil is %s, %v; want {}", data, err)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for name, want := range map[string]string{
		"demo":                          "demo",
		"Night  Photos (v2).final":      "night-photos-v2-final",
		"--a--":                         "a",
		"zoo a-z 0-9":                   "zoo-a-z-0-9",
		"写真":                            "campaign",
		"写真 3":                          "3",
		"":                              "campaign",
		strings.Repeat("x", 50):         strings.Repeat("x", 40),
		strings.Repeat("x", 39) + " yy": strings.Repeat("x", 39),
	} {
		got := token(name)
		if got != want || !valid.MatchString(got) {
			t.Errorf("token(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestCampaignIDOfInvalidSpec(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Name, s.Sigma = "x", item.Sigma(math.NaN())
	if got := s.ID(""); got != "x-invalid" {
		t.Errorf("ID = %s", got)
	}
}
