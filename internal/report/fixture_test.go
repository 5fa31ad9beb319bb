package report

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// testCampaign is the campaign of the fixtures.
func testCampaign() Campaign {
	return Campaign{
		Name: "procedural test data", Prior: "test-prior", PriorLicence: "CC0-1.0",
		Seed: 7, Select: selection.First,
	}
}

// campaign stores a campaign of synthetic pictures and curves: eight tasks, one of them with two methods, a measurement
// without truth, one failed and one dead item.
func campaign(t *testing.T, store *reporttest.Memory) []item.Result {
	t.Helper()
	drawn.once.Do(func() {
		drawn.files = reporttest.NewMemory()
		drawn.results = drawCampaign(t, drawn.files)
	})
	maps.Copy(store.Files, drawn.files.Files)
	return slices.Clone(drawn.results)
}

// drawn is the campaign that the tests share: they replace its files and results, and change none.
var drawn struct {
	once    sync.Once
	files   *reporttest.Memory
	results []item.Result
}

func drawCampaign(t *testing.T, store *reporttest.Memory) []item.Result {
	t.Helper()
	var results []item.Result
	names := []string{"harbour.png", "meadow_2.png", "meadow_10.png"}
	for ti, task := range operator.Builtin().Names()[:8] {
		for ni, name := range names {
			r := reporttest.Result(t, task, "ddiff", name, 0,
				reporttest.Scored(23+float64(ni)*1.3+float64(ti)*0.4, 21.5+float64(ti)*0.3, 0.71+0.02*float64(ni), 0.0031-0.001*float64(ni)))
			if task == "phase_retrieval" {
				delete(r.Metrics, "baseline_psnr")
			}
			reporttest.Illustrate(t, store, &r, ti*10+ni)
			results = append(results, r)
		}
	}
	for ni, name := range names {
		r := reporttest.Result(t, "super_resolution", "ddiff-hqs", name, 0, reporttest.Scored(21+0.9*float64(ni), 21.5, 0.62, 0.0052))
		reporttest.Illustrate(t, store, &r, 100+ni)
		results = append(results, r)
	}
	blind := reporttest.Result(t, "motion_deblur", "ddiff", "telescope.npy", 0, func(r *item.Result) {
		r.Item.Image, r.Item.Measurement = nil, &item.Source{Path: "telescope.npy", SHA256: strings.Repeat("cd", 32)}
		r.Metrics = item.Metrics{"residual": 0.0012}
	})
	reporttest.Illustrate(t, store, &blind, 200)
	return append(results, blind,
		reporttest.Result(t, "hdr", "ddiff", "broken.png", 0, reporttest.Ended(item.OutcomeFailed, "decode broken.png: unexpected EOF at byte 8192")),
		reporttest.Result(t, "hdr", "ddiff", "huge.png", 0, reporttest.Ended(item.OutcomeDead, "given up after 5 attempts: out of memory")),
	)
}

// texts joins the texts of cells.
func texts(cells []table.Cell) string {
	var out []string
	for _, c := range cells {
		out = append(out, c.Text)
	}
	return strings.Join(out, " ")
}

func summaryOf(t *testing.T, results []item.Result, rule selection.Rule) aggregate.Summary {
	t.Helper()
	s, err := aggregate.Summarize(reporttest.Stream(results), nil, rule, nil)
	reporttest.Must(t, err)
	return s
}
