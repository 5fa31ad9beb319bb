package method_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
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
		must(t, err)
		sum := sha256.Sum256(data)
		want = append(want, hex.EncodeToString(sum[:]))
	}
	script, err := os.ReadFile("../../scripts/tuning-photographs.sh")
	must(t, err)
	var others []string
	for _, line := range regexp.MustCompile(`(?m)^\s*([0-9a-f]{64})  \S+/\S+\.jpg$`).FindAllSubmatch(script, -1) {
		others = append(others, string(line[1]))
	}
	if len(others) != 8 {
		t.Fatalf("the script has %d photographs, want 8", len(others))
	}
	for _, m := range method.Builtin() {
		for _, row := range m.Info().Rows {
			tuned := row.Preset == "natural" || row.Preset == "gradient"
			known := !slices.ContainsFunc(row.ChosenOn, func(digest string) bool { return !slices.Contains(want, digest) && !slices.Contains(others, digest) })
			if tuned != (len(row.ChosenOn) > 0) || !known {
				t.Errorf("%s, %s, %s: chosen on %v", m.Info().Name, row.Preset, row.Task, row.ChosenOn)
			}
		}
	}
	chosen := func(preset, settings string, replaced ...string) int {
		return len(method.Builtin().ChosenOn(preset, "ddiff", operator.HDR, settings, replaced))
	}
	for _, tt := range []struct{ got, want int }{
		{chosen("gradient", "steps=150;gamma0=4;b=1;t0=999;sigma_rule=ddpm"), 14},
		{chosen("gradient", "steps=150;gamma0=5;b=2;t0=3;sigma_rule=ddpm"), 14}, // one value is the preset's
		{chosen("gradient", "steps=150;gamma0=5;b=2;t0=3;sigma_rule=full"), 0},
		{chosen("gradient", "steps=150;gamma0=4;b=2;t0=3;sigma_rule=full", "gamma0"), 0},
		{chosen("ffhq", "steps=1000;gamma0=3.5;b=0.1"), 0},
	} {
		if tt.got != tt.want {
			t.Errorf("%d photographs, want %d", tt.got, tt.want)
		}
	}
}

// TestRowsOfNatural: each row of natural is of a built-in task, or of all others, which one has: no task falls back on the method's defaults.
func TestRowsOfNatural(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	for _, row := range named(t, "ddiff").Info().Rows {
		if row.Preset == "natural" {
			rows[row.Task]++
		}
	}
	if rows[method.OtherTasks] != 1 {
		t.Errorf("%d rows of other tasks, want 1", rows[method.OtherTasks])
	}
	for task, n := range rows {
		if n != 1 || task != method.OtherTasks && !slices.Contains(operator.Builtin().Names(), task) {
			t.Errorf("%s: %d rows; want one, of a task", task, n)
		}
	}
	for preset, want := range map[string]string{"natural": "exact", "gradient": "gradient"} {
		s := resolve(t, method.Request{Method: "ddiff", Preset: preset, Task: "sensor"})
		if got := s.Value("data_step").Word; got != want {
			t.Errorf("an operator from a file has data_step %q in %s, want %q", got, preset, want)
		}
	}
}
