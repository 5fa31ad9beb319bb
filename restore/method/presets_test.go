package method_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestNaturalNamesItsPhotographs compares the digests of the preset with the files of examples/images, and with those that
// scripts/tuning-photographs.sh accepts.
func TestNaturalNamesItsPhotographs(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../examples/images/*.png")
	if err != nil || len(paths) != 6 {
		t.Fatalf("%d photographs, %v", len(paths), err)
	}
	var want []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		want = append(want, hex.EncodeToString(sum[:]))
	}
	script, err := os.ReadFile("../../scripts/tuning-photographs.sh")
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for _, line := range regexp.MustCompile(`(?m)^\s*([0-9a-f]{64})  \S+/\S+\.jpg$`).FindAllSubmatch(script, -1) {
		others = append(others, string(line[1]))
	}
	if len(others) != 8 {
		t.Fatalf("the script has %d photographs, want 8", len(others))
	}
	paper := operator.Paper().Names()
	search := []string{others[1], others[2], others[4]} // Garden, LadyBird, castle-maintenon
	ours := []string{"ddiff", "ddiff_hqs", "diff_pnp_admm", "diff_pnp_hqs"}
	before := map[string][]string{"daps": want, "reddiff": want[:3], "dcdp": want[:3]}
	for _, m := range method.Builtin() {
		for _, row := range m.Info().Rows {
			chosen := want
			switch {
			case row.Task == operator.Colorize:
				chosen = others
			case row.Task == operator.Denoise:
				chosen = []string{others[1], others[3], others[4], others[5]}
			case !slices.Contains(paper, row.Task):
				chosen = others[:6]
			case !slices.Contains(ours, m.Info().Name):
				chosen = search
				linear := !slices.Contains([]string{operator.PhaseRetrieval, operator.NonlinearDeblur, operator.HDR}, row.Task)
				if m.Info().Name == "diffpir" && row.Task == operator.MotionDeblur {
					chosen = slices.Concat(want[:3], search)
				} else if m.Info().Name != "dcdp" || linear {
					chosen = slices.Concat(before[m.Info().Name], search)
				}
			case row.Task == operator.HDR:
				chosen = slices.Concat(want, others)
			}
			four := []string{others[1], others[3], others[4], others[5]}
			steps := row.Preset == "natural" && row.Task == operator.SuperResolution && slices.Contains(ours, m.Info().Name)
			if steps || row.Preset == "fast" && slices.Contains(paper, row.Task) && row.Task != operator.HDR && row.Task != operator.PhaseRetrieval {
				chosen = slices.Concat(chosen, four) // the row of hdr has them already
			}
			tuned := row.Preset == "natural" || row.Preset == "fast"
			if got := row.ChosenOn; tuned && !slices.Equal(got, chosen) || !tuned && got != nil {
				t.Errorf("%s, %s, %s: chosen on %v", m.Info().Name, row.Preset, row.Task, got)
			}
		}
	}
	chosen := func(preset, settings string, replaced ...string) int {
		return len(method.Builtin().ChosenOn(preset, "ddiff", operator.HDR, settings, replaced))
	}
	for _, tt := range []struct{ got, want int }{
		{chosen("natural", "steps=150;gamma0=4;b=1;t0=999;sigma_rule=ddpm"), 14},
		{chosen("natural", "steps=150;gamma0=5;b=2;t0=3;sigma_rule=ddpm"), 14}, // one value is the preset's
		{chosen("natural", "steps=150;gamma0=5;b=2;t0=3;sigma_rule=full"), 0},
		{chosen("natural", "steps=150;gamma0=4;b=2;t0=3;sigma_rule=full", "gamma0"), 0},
		{chosen("ffhq", "steps=1000;gamma0=3.5;b=0.1"), 0},
	} {
		if tt.got != tt.want {
			t.Errorf("%d photographs, want %d", tt.got, tt.want)
		}
	}
}

// The preset fast has a row for every task, with at most 85 % of the steps of natural for the paper's tasks but phase
// retrieval, and the row of natural for the others.
func TestFast(t *testing.T) {
	t.Parallel()
	for _, d := range operator.Builtin().Tasks() {
		natural := resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: d.Name})
		fast := resolve(t, method.Request{Method: "ddiff", Preset: "fast", Task: d.Name})
		if !slices.Contains(operator.Paper().Names(), d.Name) || d.Name == operator.PhaseRetrieval {
			if !reflect.DeepEqual(fast, natural) {
				t.Errorf("%s: %+v, want %+v", d.Name, fast, natural)
			}
			continue
		}
		if most := natural.Steps * 17 / 20; fast.Steps > most {
			t.Errorf("%s: %d steps, want at most %d", d.Name, fast.Steps, most)
		}
		for _, p := range []string{"sigma_rule", "answer", "recover"} {
			if got, want := fast.Value(p), natural.Value(p); got != want {
				t.Errorf("%s: %s %v, natural has %v", d.Name, p, got, want)
			}
		}
	}
}

// TestNaturalHasAllTasks: ddiff has a row of natural for every built-in task, so that none falls back on the defaults unnoticed.
func TestNaturalHasAllTasks(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	for _, row := range method.DDiff().Info().Rows {
		if row.Preset == "natural" {
			rows[row.Task]++
		}
	}
	for _, task := range operator.Builtin().Names() {
		if rows[task] != 1 {
			t.Errorf("%s: %d rows, want 1", task, rows[task])
		}
		delete(rows, task)
	}
	for task := range rows {
		t.Errorf("%s: no such task", task)
	}
}
