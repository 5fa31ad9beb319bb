package report

import (
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/operator"
)

// costly gives a result a cost.
func costly(c manifest.Cost) func(*manifest.Result) {
	return func(r *manifest.Result) { r.Cost = c }
}

// The tables have the mean cost per image, of all runs where the rule chooses among them, and no column for what no row
// knows or uses.
func TestCostInTables(t *testing.T) {
	t.Parallel()
	network := manifest.Cost{Network: 100, Operator: 300}
	latent := manifest.Cost{Network: 10, NetworkBackward: 10, Operator: 20, Autoencoder: 11, AutoencoderBackward: 10}
	score := scored(25, 20, 0.7, 0.001)
	results := func(costs ...manifest.Cost) (out []manifest.Result) {
		for i, c := range costs {
			out = append(out, result(t, "hdr", "other", "a", i, score, costly(c)))
		}
		return out
	}
	for name, c := range map[string]struct {
		results []manifest.Result
		rule    Rule
		columns string
		cells   string
	}{
		"pixels":  {results(network), RuleFirst, "network backward operator", "100 0 300"},
		"latents": {results(latent), RuleFirst, "network backward operator autoencoder its backward", "10 10 20 11 10"},
		"first":   {results(network, network), RuleFirst, "network backward operator", "100 0 300"},
		"mean":    {results(network, network), RuleMean, "network backward operator", "100 0 300"},
		"chosen":  {results(network, network), RuleBestPSNR, "network backward operator", "200 0 600"},
		"unknown": {results(manifest.Cost{}), RuleFirst, "", ""},
		"partly":  {results(network, manifest.Cost{}), RuleBestPSNR, "", ""},
	} {
		s, err := Summarize(stream(c.results), operator.Builtin(), c.rule, nil)
		if err != nil {
			t.Fatal(err)
		}
		table := TableOf(s, "-")
		fixed := len(TableOf(Summary{}, "-").Head)
		if got := strings.Join(table.Head[fixed:], " "); got != c.columns {
			t.Errorf("%s: columns %q, want %q", name, got, c.columns)
		}
		if got := texts(table.Lines[0][fixed:]); got != c.cells {
			t.Errorf("%s: cells %q, want %q", name, got, c.cells)
		}
		if said := strings.Contains(strings.Join(table.Notes, " "), "Per image: network counts"); said != (c.columns != "") {
			t.Errorf("%s: the note on the cost is there: %v", name, said)
		}
	}
}

// texts joins the texts of cells.
func texts(cells []TableCell) string {
	var out []string
	for _, c := range cells {
		out = append(out, c.Text)
	}
	return strings.Join(out, " ")
}
