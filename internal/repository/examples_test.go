package repository

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
)

// Every example is a campaign that the program accepts, of a dataset that is there.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "examples/*.yaml") {
		spec, err := manifest.Load(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := spec.Validate(shard.Vocabulary()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		n, err := manifest.Count(manifest.Rows(t.Context(), spec.Dataset, nil), spec)
		if err != nil || n == 0 {
			t.Errorf("%s: %d items, %v", name, n, err)
		}
	}
}

// Every campaign in the documents is one that the program accepts.
func TestDocumentedCampaigns(t *testing.T) {
	t.Parallel()
	found := 0
	for _, document := range tracked(t, "*.md") {
		for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?\n)```").FindAllStringSubmatch(read(t, document), -1) {
			found++
			spec, err := manifest.Parse(document, []byte(m[1]), t.TempDir())
			if err != nil {
				t.Errorf("%v\nin\n%s", err, m[1])
				continue
			}
			if err := spec.Validate(shard.Vocabulary()); err != nil {
				t.Errorf("%v\nin\n%s", err, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document shows a campaign")
	}
}

// The README describes every field of the campaign file and names every task, method and
// preset.
func TestReadmeNamesEverything(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	fields := regexp.MustCompile(`(?m)^\t\t"(\w+)": +func\(n \*yaml\.Node`)
	var names []string
	for _, m := range fields.FindAllStringSubmatch(read(t, "manifest/spec_fields.go"), -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Fatal("manifest/spec_fields.go declares no field")
	}
	v := shard.Vocabulary()
	for task, params := range v.Tasks {
		names = append(append(names, task), params...)
	}
	names = append(append(names, v.Methods...), v.Presets...)
	for _, n := range names {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`).MatchString(readme) {
			t.Errorf("README.md does not mention %s", n)
		}
	}
	if strings.Count(readme, "<!-- measured:begin -->") != 1 || strings.Count(readme, "<!-- measured:end -->") != 1 {
		t.Error("README.md lacks the marks of the measured figures")
	}
}
