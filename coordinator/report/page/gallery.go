package page

import (
	"cmp"
	"slices"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/statistic"
)

// MaxItems bounds the items whose curves the page holds, maxFailures its list of failed and dead items; results.csv has all.
const (
	MaxItems    = 200
	maxFailures = 200
)

// Gallery selects the entries of the contact sheets, of the curves on the page and of its list of failures. It takes entries
// in order and holds a bounded number: of each task at most limit of the first and limit/2 of the worst.
type Gallery struct {
	Limit    int
	Tasks    []*taskGallery
	failures []*entry.Entry
}

// taskGallery holds the candidates of one task; first is in the order of the report, worst begins with the worst.
type taskGallery struct {
	task         string
	Items, Done  int
	First, worst []*entry.Entry
}

// Names are those of the tasks.
func (g *Gallery) Names() []string {
	var out []string
	for _, t := range g.Tasks {
		out = append(out, t.task)
	}
	return out
}

// Add takes the next entry.
func (g *Gallery) Add(e *entry.Entry) {
	last := len(g.Tasks) - 1
	if last < 0 || g.Tasks[last].task != e.Task {
		g.Tasks = append(g.Tasks, &taskGallery{task: e.Task})
		last++
	}
	t := g.Tasks[last]
	t.Items++
	switch {
	case e.Done():
		t.Done++
		t.add(e, g.Limit)
	case len(g.failures) < maxFailures:
		g.failures = append(g.failures, e)
	}
}

func (t *taskGallery) add(e *entry.Entry, limit int) {
	if len(t.First) < limit {
		t.First = append(t.First, e)
	}
	at, _ := slices.BinarySearchFunc(t.worst, e, func(a, b *entry.Entry) int {
		return cmp.Or(compareWorst(a, b), entry.CompareEntries(a, b))
	})
	if at < limit/2 {
		t.worst = slices.Insert(t.worst, at, e)
		t.worst = t.worst[:min(len(t.worst), limit/2)]
	}
}

// Excerpt selects the items whose curves are on the page, in order: all finished items up to the limit; beyond it an equal
// share of each task, half of it the worst, the rest the first.
func (g *Gallery) Excerpt() []*entry.Entry {
	counts := make([]int, len(g.Tasks))
	for i, t := range g.Tasks {
		counts[i] = t.Done
	}
	var out []*entry.Entry
	for i, share := range shares(counts, g.Limit) {
		out = append(out, g.Tasks[i].pick(share)...)
	}
	return out
}

// pick returns share entries in order: the worst for half of them, then the first of the others.
func (t *taskGallery) pick(share int) []*entry.Entry {
	out := slices.Clone(t.worst[:min(share/2, len(t.worst))])
	for _, e := range t.First {
		if len(out) >= share {
			break
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, entry.CompareEntries)
	return out
}

func compareWorst(a, b *entry.Entry) int {
	return compareScores(a.Scores.PSNR, b.Scores.PSNR, a.Scores.Residual, b.Scores.Residual)
}

// compareScores puts the lower PSNR first, then, without a truth, the larger residual, then scores without either.
func compareScores(psnrA, psnrB, residualA, residualB float64) int {
	if statistic.Defined(psnrA) || statistic.Defined(psnrB) {
		return compareDefined(psnrA, psnrB)
	}
	return compareDefined(-residualA, -residualB)
}

// compareDefined orders numbers, NaN last.
func compareDefined(a, b float64) int {
	if statistic.Defined(a) != statistic.Defined(b) {
		return -cmp.Compare(a, b) // which puts NaN first
	}
	return cmp.Compare(a, b)
}
