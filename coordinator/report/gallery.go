package report

import (
	"cmp"
	"iter"
	"slices"
)

// maxItems bounds the items whose curves the page holds, maxFailures its list of failed and dead items; results.csv has all.
const (
	maxItems    = 200
	maxFailures = 200
)

// gallery selects the entries of the contact sheets, of the curves on the page and of its list of failures. It takes entries
// in order and holds a bounded number: of each task at most limit of the first and limit/2 of the worst.
type gallery struct {
	limit    int
	tasks    []*taskGallery
	failures []*entry
}

// taskGallery holds the candidates of one task; first is in the order of the report, worst begins with the worst.
type taskGallery struct {
	task         string
	items, done  int
	first, worst []*entry
}

// names are those of the tasks.
func (g *gallery) names() []string {
	var out []string
	for _, t := range g.tasks {
		out = append(out, t.task)
	}
	return out
}

// watch yields the entries and adds each of them.
func (g *gallery) watch(ordered iter.Seq2[*entry, error]) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for e, err := range ordered {
			if err == nil {
				g.add(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (g *gallery) add(e *entry) {
	last := len(g.tasks) - 1
	if last < 0 || g.tasks[last].task != e.Task {
		g.tasks = append(g.tasks, &taskGallery{task: e.Task})
		last++
	}
	t := g.tasks[last]
	t.items++
	switch {
	case e.done():
		t.done++
		t.add(e, g.limit)
	case len(g.failures) < maxFailures:
		g.failures = append(g.failures, e)
	}
}

func (t *taskGallery) add(e *entry, limit int) {
	if len(t.first) < limit {
		t.first = append(t.first, e)
	}
	at, _ := slices.BinarySearchFunc(t.worst, e, func(a, b *entry) int {
		return cmp.Or(compareWorst(a, b), compareEntries(a, b))
	})
	if at < limit/2 {
		t.worst = slices.Insert(t.worst, at, e)
		t.worst = t.worst[:min(len(t.worst), limit/2)]
	}
}

// excerpt selects the items whose curves are on the page, in order: all finished items up to the limit; beyond it an equal
// share of each task, half of it the worst, the rest the first.
func (g *gallery) excerpt() []*entry {
	counts := make([]int, len(g.tasks))
	for i, t := range g.tasks {
		counts[i] = t.done
	}
	var out []*entry
	for i, share := range shares(counts, g.limit) {
		out = append(out, g.tasks[i].pick(share)...)
	}
	return out
}

// pick returns share entries in order: the worst for half of them, then the first of the others.
func (t *taskGallery) pick(share int) []*entry {
	out := slices.Clone(t.worst[:min(share/2, len(t.worst))])
	for _, e := range t.first {
		if len(out) >= share {
			break
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, compareEntries)
	return out
}

// compareWorst puts the lower PSNR first, then, without a truth, the larger residual, then entries without either.
func compareWorst(a, b *entry) int {
	x, y := &a.Scores, &b.Scores
	if defined(x.PSNR) || defined(y.PSNR) {
		return compareDefined(x.PSNR, y.PSNR)
	}
	return compareDefined(-x.Residual, -y.Residual)
}

// compareDefined orders numbers, NaN last.
func compareDefined(a, b float64) int {
	if defined(a) != defined(b) {
		return -cmp.Compare(a, b) // which puts NaN first
	}
	return cmp.Compare(a, b)
}
