package manifest

import (
	"reflect"
	"strings"
	"testing"

	"ddiff/restore/item"
)

func TestParseSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Split{
		"{tune: 0.3, seed: 9}":              {Share: 0.3, Seed: 9},
		"{tune: [a, 'night/*'], test: [b]}": {Tune: []string{"a", "night/*"}, Test: []string{"b"}},
		"{folds: 3, run: test, fold: 2}":    {Folds: 3, Run: SideTest, Fold: 2},
		"{share: 0.5, run: tune}":           {Share: 0.5, Run: SideTune},
		"{folds: 100}":                      {Folds: 100},
		"{folds: 2, run: tune, fold: 2}":    {Folds: 2, Run: SideTune, Fold: 2},
		"{folds: 2, run: all}":              {Folds: 2, Run: SideAll},
	} {
		s, err := Parse("c.yaml", []byte("dataset: {path: p}\ntasks: [hdr]\nsplit: "+text+"\n"), "/")
		if err != nil || !reflect.DeepEqual(*s.Split, want) {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{
		"{tune: 0}":             "c.yaml:3: split.tune: 0 is out of range, want a share above 0 and below 1",
		"{tune: 1}":             "split.tune: 1 is out of range",
		"{tune: .nan}":          "split.tune: NaN is out of range",
		"{tune: yes}":           "split.tune: want a share between 0 and 1, or a list of patterns",
		"{folds: 1}":            "split.folds: 1 is out of range, want 2 to 100",
		"{folds: 2, tune: 0.5}": "split.folds: excludes a share",
		"{tune: [a], folds: 2}": "split.tune: a list of patterns excludes",
		"{tune: ['[a']}":        `split.tune: "[a" is not a pattern of names`,
		"{test: ['']}":          `split.test: "" is not a pattern`,
		"{run: tests}":          `split.run: unknown value "tests"`,
		"{folds: 2, run: test}": "split.fold: is missing; run: test needs the number of a fold, 1 to 2",
		"{folds: 2, run: tune}": "split.fold: is missing; run: tune needs the number of a fold, 1 to 2",
		"{folds: 2, fold: 3}":   "split.fold: 3 is out of range",
		"{folds: 2, fold: -1}":  "split.fold: -1 is out of range",
		"{folds: 101}":          "split.folds: 101 is out of range",
		"{test: [a], folds: 2}": "split.tune: a list of patterns excludes",
		"{tune: 0.5, sides: 2}": `split: unknown field "sides"`,
	} {
		_, err := Parse("c.yaml", []byte("dataset: {path: p}\ntasks: [hdr]\nsplit: "+text+"\n"), "/")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// TestYAMLIsTheCampaign parses the written form of a campaign.
func TestYAMLIsTheCampaign(t *testing.T) {
	t.Parallel()
	text := `name: "12"
dataset: {path: /data/{a,b}, columns: {image: file, name: "1"}, size: 64}
tasks: [hdr, {name: super_resolution, params: {factor: 4}, sigma: 0.02, steps: 9, solver: {t0: none, gamma0: 3}, methods: [b], runs: 2}]
methods: [a, b]
split: {tune: ["x*"], run: test}
seed: 18446744073709551615
`
	text = strings.Replace(text, "/data/{a,b}", `"/data/{a,b}"`, 1)
	first, err := Parse("c.yaml", []byte(text), "/base")
	must(t, err)
	data, err := first.YAML("first line\nsecond line")
	must(t, err)
	second, err := Parse("d.yaml", data, "/elsewhere")
	if err != nil || second.ID("") != first.ID("") || second.Output != first.Output || second.Seed != first.Seed {
		t.Errorf("error %v; the written campaign is another one:\n%s", err, data)
	}
	if !strings.HasPrefix(string(data), "# first line\n# second line\nname: \"12\"\n") || !strings.Contains(string(data), "\n  - {name: hdr}\n") {
		t.Errorf("written form:\n%s", data)
	}
}

// TestMethodsOfATask expands tasks that some methods solve.
func TestMethodsOfATask(t *testing.T) {
	t.Parallel()
	s := testSpec()
	s.Methods = []string{"ddiff", "ddiff_hqs"}
	s.Tasks = []item.Task{{Name: "hdr", Methods: []string{"ddiff_hqs"}}, {Name: "hdr", Methods: []string{"ddiff"}}, {Name: "hdr", Steps: 7}}
	if n := ItemsPerRow(Row{}, s); n != 4*s.Runs {
		t.Errorf("%d items per row, want %d", n, 4*s.Runs)
	}
	var methods []string
	for _, c := range s.Cells() {
		if c.Run == 0 {
			methods = append(methods, c.Method)
		}
	}
	if got := strings.Join(methods, " "); got != "ddiff_hqs ddiff ddiff ddiff_hqs" {
		t.Errorf("methods %s", got)
	}
}
