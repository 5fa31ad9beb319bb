package table_test

import (
	"strings"
	"testing"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/table"
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
	score := reporttest.Scored(25, 20, 0.7, 0.001)
	results := func(costs ...manifest.Cost) (out []manifest.Result) {
		for i, c := range costs {
			out = append(out, reporttest.Result(t, "hdr", "other", "a", i, score, costly(c)))
		}
		return out
	}
	for name, c := range map[string]struct {
		results []manifest.Result
		rule    selection.Rule
		columns string
		cells   string
	}{
		"pixels":  {results(network), selection.First, "network backward operator", "100 0 300"},
		"latents": {results(latent), selection.First, "network backward operator autoencoder its backward", "10 10 20 11 10"},
		"first":   {results(network, network), selection.First, "network backward operator", "100 0 300"},
		"mean":    {results(network, network), selection.Mean, "network backward operator", "100 0 300"},
		"chosen":  {results(network, network), selection.BestPSNR, "network backward operator", "200 0 600"},
		"unknown": {results(manifest.Cost{}), selection.First, "", ""},
		"partly":  {results(network, manifest.Cost{}), selection.BestPSNR, "", ""},
	} {
		s, err := aggregate.Summarize(reporttest.Stream(c.results), operator.Builtin(), c.rule, nil)
		reporttest.Must(t, err)
		shown := table.Of(s, "-")
		fixed := len(table.Of(aggregate.Summary{}, "-").Head)
		if got := strings.Join(shown.Head[fixed:], " "); got != c.columns {
			t.Errorf("%s: columns %q, want %q", name, got, c.columns)
		}
		if got := texts(shown.Lines[0][fixed:]); got != c.cells {
			t.Errorf("%s: cells %q, want %q", name, got, c.cells)
		}
		if said := strings.Contains(strings.Join(shown.Notes, " "), "Per image: network counts"); said != (c.columns != "") {
			t.Errorf("%s: the note on the cost is there: %v", name, said)
		}
	}
}

// texts joins the texts of cells.
func texts(cells []table.Cell) string {
	var out []string
	for _, c := range cells {
		out = append(out, c.Text)
	}
	return strings.Join(out, " ")
}
