package shard_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/method"
)

const golden = "testdata/golden"

// TestGoldenIdentities computes the identities of the demo and of a campaign of four methods and compares
// them with recorded ones. A difference means that stored results are not found again.
func TestGoldenIdentities(t *testing.T) {
	t.Parallel()
	for campaign, list := range map[string]string{
		"demo.yaml":    "demo.csv",
		"methods.yaml": "methods.csv",
	} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			spec, err := manifest.Load(filepath.Join(golden, campaign))
			must(t, err)
			must(t, spec.Validate(manifest.Catalogue{}))
			p, err := prior.Open(prior.Bundled)
			must(t, err)
			s, err := shard.New(shard.Config{Spec: spec, Prior: &p.Description, Sources: manifest.Files{}})
			must(t, err)
			var got []string
			for _, w := range collect(t, s, shard.Position{}) {
				if len(w.Failed) > 0 {
					t.Fatalf("item %s failed: %s", w.Failed[0].Item.Name, w.Failed[0].Reason)
				}
				for _, it := range w.Items {
					got = append(got, strings.Join([]string{it.ID, it.Name, it.Task, it.Method}, " "))
				}
			}
			var want []string
			data, err := os.ReadFile(filepath.Join(golden, list))
			must(t, err)
			rows, err := csv.NewReader(strings.NewReader(string(data))).ReadAll()
			must(t, err)
			for _, row := range rows[1:] {
				want = append(want, strings.Join(row, " "))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("identities of %s differ from the recorded ones:\n got %s\nwant %s", campaign, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		})
	}
}

// TestGoldenSettings compares the settings of the paper's step for every preset and task, as they enter an identity, with recorded ones.
func TestGoldenSettings(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(golden, "settings.tsv"))
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	if len(lines) != 24 {
		t.Fatalf("%d settings, want 24", len(lines))
	}
	for _, line := range lines {
		f := strings.Split(line, "\t")
		cfg, err := method.Builtin().Resolve(method.Request{Method: "ddiff", Preset: f[0], Task: f[1]}, p.Schedule.Steps())
		must(t, err)
		got, err := json.Marshal(cfg)
		must(t, err)
		if string(got) != f[2] {
			t.Errorf("%s %s: %s, want %s", f[0], f[1], got, f[2])
		}
	}
}
