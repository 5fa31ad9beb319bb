package repository

import (
	"encoding/csv"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// The program accepts every example, and its dataset exists, except for those that the user provides: the campaigns of the
// paper, and photographs that make tuning-photographs downloads.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "examples/*.yaml") {
		spec, err := manifest.Load(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := spec.Validate(manifest.Catalogue{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(name, "examples/paper/") {
			if data := filepath.Join(root, "examples", "paper", "data"); filepath.Dir(spec.Dataset.Path) != mustAbs(t, data) {
				t.Errorf("%s reads %s, want a dataset in %s", name, spec.Dataset.Path, data)
			}
			continue
		}
		// Photographs that a command downloads.
		if folder := filepath.Base(spec.Dataset.Path); spec.Dataset.Path == mustAbs(t, filepath.Join(root, ".cache", folder)) {
			command := map[string][2]string{
				"tuning-photographs":  {"make tuning-photographs", "scripts/tuning-photographs.sh"},
				"quality-photographs": {"make quality", "tools/quality.py"},
				"many-photographs":    {"tools/quality.py --set many", "tools/quality.py"},
			}[folder]
			if command[0] == "" || !strings.Contains(read(t, command[1]), ".cache/"+folder) || !strings.Contains(read(t, name), command[0]) {
				t.Errorf("%s does not name the command that downloads its dataset", name)
			}
			continue
		}
		items := 0
		for row, err := range manifest.Rows(t.Context(), spec.Dataset, nil) {
			if err != nil || row.Err != nil {
				t.Errorf("%s: %v, %v", name, err, row.Err)
			}
			items += manifest.ItemsPerRow(row, spec)
		}
		if items == 0 {
			t.Errorf("%s has no items", name)
		}
	}
}

// The campaigns of the paper run each method of the tables, and the published figures have the names that the program gives to the methods.
func TestPaperTables(t *testing.T) {
	t.Parallel()
	files := tracked(t, "examples/paper/*.published.csv")
	if len(files) != 7 {
		t.Fatalf("files %v, want seven", files)
	}
	for _, name := range files {
		table := csv.NewReader(strings.NewReader(read(t, name)))
		table.Comment = '#'
		rows, err := table.ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var published, campaign []string
		task, method := slices.Index(rows[0], "task"), slices.Index(rows[0], "method")
		for _, row := range rows[1:] {
			published = append(published, row[task]+" "+row[method])
		}
		spec, err := manifest.Load(filepath.Join(root, strings.TrimSuffix(name, ".published.csv")+".yaml"))
		must(t, err)
		for _, task := range spec.Tasks {
			methods := task.Methods
			if len(methods) == 0 {
				methods = spec.Methods
			}
			for _, m := range methods {
				campaign = append(campaign, task.Name+" "+m)
			}
		}
		slices.Sort(published)
		slices.Sort(campaign)
		if !slices.Equal(published, campaign) {
			t.Errorf("%s has the tasks and methods %v, its campaign %v", name, published, campaign)
		}
		if strings.Contains(name, "table1_") { // the bundled prior has a schedule of 1000 steps, as the priors of the paper
			p, err := prior.Open(prior.Bundled)
			must(t, err)
			if err := spec.Validate(manifest.Catalogue{Prior: &p.Description}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	must(t, err)
	return abs
}

// The program accepts every campaign in the documents. The YAML of docs/kubernetes.md has values of the chart.
func TestDocumentedCampaigns(t *testing.T) {
	t.Parallel()
	found := 0
	for _, document := range tracked(t, "*.md") {
		if document == "docs/kubernetes.md" {
			continue
		}
		for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?\n)```").FindAllStringSubmatch(read(t, document), -1) {
			found++
			spec, err := manifest.Parse(document, []byte(m[1]), t.TempDir())
			if err != nil {
				t.Errorf("%v\nin\n%s", err, m[1])
				continue
			}
			if err := spec.Validate(manifest.Catalogue{}); err != nil {
				t.Errorf("%v\nin\n%s", err, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document shows a campaign")
	}
}

// The documents describe every field of the campaign file and name every task, its parameters and every preset.
func TestPagesNameEverything(t *testing.T) {
	t.Parallel()
	var names []string
	for _, of := range []any{manifest.Spec{}, manifest.Dataset{}, item.Task{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
		}
	}
	wantNames(t, "docs/campaigns.md", names)

	names = method.Set{}.Presets()
	for _, d := range operator.Builtin() {
		names = append(names, d.Name)
		for _, p := range d.Parameters {
			names = append(names, p.Name)
		}
	}
	wantNames(t, "docs/tasks.md", names)
}

// wantNames checks that a document mentions every name.
func wantNames(t *testing.T, document string, names []string) {
	t.Helper()
	text := read(t, document)
	for _, n := range names {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`).MatchString(text) {
			t.Errorf("%s does not mention %s", document, n)
		}
	}
}
