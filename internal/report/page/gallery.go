package page

import (
	"cmp"
	"slices"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// MaxItems bounds the items whose curves the page holds, maxFailures its list of failed and dead items; results.csv has all.
const (
	MaxItems    = 200
	maxFailures = 200
)

// Gallery has the entries of the contact sheets, of the curves on the page and of its list of failures.
type Gallery struct {
	Tasks    []TaskGallery
	limit    int
	failures []*entry.Entry // the first ones
}

// TaskGallery has the number of items of one task, and the finished ones in the order of the report.
type TaskGallery struct {
	Task  string
	Items int
	Done  []*entry.Entry
}

// NewGallery returns the gallery of sorted entries. The page has the curves of at most limit of them.
func NewGallery(entries []*entry.Entry, limit int) *Gallery {
	g := &Gallery{limit: limit}
	for same := range sweep.Blocks(entries, func(e *entry.Entry) string { return e.Task }) {
		t := TaskGallery{Task: same[0].Task, Items: len(same)}
		for _, e := range same {
			if e.Done() {
				t.Done = append(t.Done, e)
			} else if len(g.failures) < maxFailures {
				g.failures = append(g.failures, e)
			}
		}
		g.Tasks = append(g.Tasks, t)
	}
	return g
}

// Names are those of the tasks.
func (g *Gallery) Names() []string {
	var out []string
	for _, t := range g.Tasks {
		out = append(out, t.Task)
	}
	return out
}

// Excerpt selects the items whose curves are on the page, in order: all finished items up to the limit; beyond it an equal
// share of each task, half of it the worst, the rest the first.
func (g *Gallery) Excerpt() []*entry.Entry {
	counts := make([]int, len(g.Tasks))
	for i, t := range g.Tasks {
		counts[i] = len(t.Done)
	}
	var out []*entry.Entry
	for i, share := range shares(counts, g.limit) {
		out = append(out, g.Tasks[i].pick(share)...)
	}
	return out
}

// pick returns share entries in order: the worst for half of them, then the first of the others.
func (t TaskGallery) pick(share int) []*entry.Entry {
	worst := slices.Clone(t.Done)
	slices.SortStableFunc(worst, compareWorst)
	out := slices.Clone(worst[:share/2])
	for _, e := range t.Done {
		if len(out) < share && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, entry.CompareEntries)
	return out
}

// compareWorst puts the lower PSNR first, then, without a truth, the larger residual, then scores without either.
func compareWorst(a, b *entry.Entry) int {
	x, y := a.Of(metric.NamePSNR), b.Of(metric.NamePSNR)
	if statistic.Defined(x) || statistic.Defined(y) {
		return compareDefined(x, y)
	}
	return compareDefined(-a.Of(metric.NameResidual), -b.Of(metric.NameResidual))
}

// compareDefined orders numbers, NaN last.
func compareDefined(a, b float64) int {
	if statistic.Defined(a) != statistic.Defined(b) {
		return -cmp.Compare(a, b) // which puts NaN first
	}
	return cmp.Compare(a, b)
}
