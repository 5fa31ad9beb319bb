package published

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of the paper have a row of figures for every task, and for DDiff all circumstances.
func TestPublishedFilesOfThePaper(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "examples", "paper")
	for name, rows := range map[string]int{"table1_ffhq": 52, "table1_imagenet": 52, "ablation": 32} {
		f, err := os.Open(filepath.Join(dir, name+".published.csv"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		tasks := 0
		for _, r := range p.rows {
			for _, f := range p.figures() {
				if r[f.name] == "" {
					t.Errorf("%s: %s of %s has no %s", name, r["task"], r["method"], f.name)
				}
			}
			if r["method"] != "ddiff" {
				continue
			}
			tasks++
			for _, c := range publishedConditions() {
				if r[c] == "" && c != conditionSelect {
					t.Errorf("%s: %s has no %s", name, r["task"], c)
				}
			}
		}
		if len(p.figures()) != 4 || len(p.rows) != rows || tasks != 8 || !strings.Contains(p.Source, "CVPR 2026") {
			t.Errorf("%s: %d kinds of figures, %d rows, %d of DDiff, source %q", name, len(p.figures()), len(p.rows), tasks, p.Source)
		}
	}
}
