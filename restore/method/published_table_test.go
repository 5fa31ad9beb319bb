package method_test

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/restore/method"
)

// TestPublishedPresets compares every value of the presets ffhq and imagenet of ddiff and latent_ddiff with testdata/published.csv, and every
// line of that table with the presets. The column source has the place of each value in the authors' released code, SoniaMinseoKim/ddiff-cvpr
// at ae3ce1f, or in the paper. The code has no latent method. t_gamma of box inpainting on ImageNet is 500 in the paper's Table 6.
func TestPublishedPresets(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/published.csv")
	must(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	must(t, err)
	if want := []string{"method", "preset", "task", "parameter", "value", "source"}; !slices.Equal(lines[0], want) {
		t.Fatalf("columns %v, want %v", lines[0], want)
	}
	table := map[string]string{} // by method, preset, task and parameter
	for i, l := range lines[1:] {
		key := strings.Join(l[:4], " ")
		if _, ok := table[key]; ok || l[4] == "" || l[5] == "" {
			t.Errorf("line %d: %s is there twice, or without value or source", i+2, key)
		}
		table[key] = l[4]
	}
	presets, checked := 0, 0
	for _, m := range []method.Named{named(t, "ddiff"), named(t, "latent_ddiff")} {
		for _, row := range m.Info().Rows {
			if row.Preset != "ffhq" && row.Preset != "imagenet" {
				continue
			}
			s := resolve(t, method.Request{Method: m.Info().Name, Preset: row.Preset, Task: row.Task})
			values := map[string]string{"steps": strconv.Itoa(s.Steps)}
			for _, v := range s.Values {
				values[v.Name] = v.Value.Word
				if v.Value.Word == "" {
					values[v.Name] = strconv.FormatFloat(v.Value.Number, 'g', -1, 64)
				}
			}
			for name, got := range values {
				presets++
				key := strings.Join([]string{s.Method, row.Preset, row.Task, name}, " ")
				want, ok := table[key]
				if !ok {
					t.Errorf("%s: %s is not in the table", key, got)
					continue
				}
				if checked++; got != want {
					t.Errorf("%s: %s, want %s", key, got, want)
				}
				delete(table, key)
			}
		}
	}
	for key, want := range table {
		t.Errorf("%s: %s is in the table, and in no preset", key, want)
	}
	t.Logf("presets=%d checked=%d", presets, checked)
}
