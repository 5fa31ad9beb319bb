package page

import (
	"math"
	"slices"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/sheet"
	"ddiff/internal/report/statistic"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// pictures shows of each problem a typical, the best and the worst measurement. Pictures have their own pixels where there is room for them.
type pictures struct {
	Problems []pictured
	// Beside: all problems have their three beside each other, under the same Ranks and Titles.
	Beside        bool
	Ranks, Titles []string
	// Truth: there is a picture of one, Scored: a PSNR.
	Truth, Scored bool
	// More are the sheets of the tasks without pictures here.
	More []sheet.File
}

type pictured struct {
	Label, Detail, Doc string
	Means              []approachMean
	Sheet              sheet.File
	Examples           []example
	// Beside: the examples are beside each other; else below each other, as more than one approach, or larger pictures, need the width.
	Beside, Truth bool
}

// approachMean has the means of an approach; Name is empty if there is only one.
type approachMean struct {
	Name       string
	PSNR, Gain *number
}

type example struct {
	Rank, Name, ID, Path string
	Score, From          string
	Panes                []pane
}

// pane is a picture. Over is that of the degraded image, over which a restored one can be wiped.
type pane struct {
	Title, Path, Over, Score string
	Width, Height            int
}

// maxProblems bounds the problems with pictures; of more only the first one of each task has them. wide is the room of a row,
// smallest the width to which small pictures are enlarged by a whole number.
const (
	maxProblems = 16
	wide        = 1216
	smallest    = 128
)

// newPictures shows what the listing has.
func newPictures(s aggregate.Summary, l *Listing, sheets []sheet.File, tasks operator.Set) pictures {
	rows := problemRows(l, false)
	if len(rows) > maxProblems {
		rows = problemRows(l, true)
	}
	rows = rows[:min(maxProblems, len(rows))]
	byCell := make(map[int]*aggregate.Row)
	for i := range s.Rows {
		if at, listed := l.cells[s.Rows[i].Cell]; listed {
			byCell[at] = &s.Rows[i]
		}
	}
	p := pictures{Beside: true, Titles: []string{"degraded", "restored"}}
	shown := make(map[string]bool)
	for _, r := range rows {
		if len(r.items) == 0 {
			continue
		}
		one, some := l.pictured(r, s, byCell)
		if !some {
			continue
		}
		task := l.Cells[r.approaches[0]].Task
		one.Doc, one.Sheet = tasks.Known(task).Doc, sheetOf(sheets, task)
		shown[task] = true
		p.Truth = p.Truth || one.Truth
		p.Beside, p.Scored = p.Beside && one.Beside, p.Scored || len(one.Means) > 0
		p.Problems = append(p.Problems, one)
		if len(one.Examples) > len(p.Ranks) {
			p.Ranks = nil
			for _, e := range one.Examples {
				p.Ranks = append(p.Ranks, e.Rank)
			}
		}
	}
	if p.Truth {
		p.Titles = append(p.Titles, truthTitle)
	}
	for _, f := range sheets {
		if !shown[f.Task] {
			p.More = append(p.More, f)
		}
	}
	return p
}

// pictured has the means and the examples of a problem; some: of one there is a picture.
func (l *Listing) pictured(r problemRow, s aggregate.Summary, byCell map[int]*aggregate.Row) (one pictured, some bool) {
	cell := l.Cells[r.approaches[0]]
	one = pictured{Label: cell.Label, Beside: len(r.approaches) == 1}
	for k, c := range r.approaches {
		row := byCell[c]
		if row == nil {
			continue
		}
		if k == 0 {
			one.Detail = s.Varying.ProblemText(row)
		}
		if psnr := row.PSNR(); psnr.N > 0 {
			mean := approachMean{PSNR: new(numberOf(psnr, 2, false))}
			if gain := row.Means[entry.Gain]; gain.N > 0 {
				mean.Gain = new(numberOf(gain, 2, true))
			}
			if len(r.approaches) > 1 {
				mean.Name = r.title(l, k)
			}
			one.Means = append(one.Means, mean)
		}
	}
	for _, of := range r.examples(l) {
		e := l.example(r, of)
		width := 0
		for _, pane := range e.Panes {
			width += pane.Width
			one.Truth, some = one.Truth || pane.Title == truthTitle, some || pane.Path != ""
		}
		one.Beside = one.Beside && 3*width <= wide
		one.Examples = append(one.Examples, e)
	}
	return one, some
}

const truthTitle = "truth"

func sheetOf(sheets []sheet.File, task string) sheet.File {
	if at := slices.IndexFunc(sheets, func(f sheet.File) bool { return f.Task == task }); at >= 0 {
		return sheets[at]
	}
	return sheet.File{}
}

// ranked is a measurement by its rows of the listing.
type ranked struct {
	rank string
	rows []int
}

// examples are the typical one, whose PSNR is nearest to the mean, the best and the worst; of fewer measurements all.
func (r *problemRow) examples(l *Listing) []ranked {
	last := len(r.items) - 1
	if last == 0 {
		return []ranked{{"", r.items[0]}}
	}
	psnr := func(k int) float64 { return l.of(r.items[k][0], metric.NamePSNR) }
	mean, n := 0.0, 0.0
	for k := range r.items {
		if v := psnr(k); statistic.Defined(v) {
			mean, n = mean+v, n+1
		}
	}
	typical := last / 2
	for k := 1; k < last && n > 0; k++ {
		if math.Abs(psnr(k)-mean/n) < math.Abs(psnr(typical)-mean/n) || typical == 0 {
			typical = k
		}
	}
	best := last
	for best > 1 && n > 0 && !statistic.Defined(psnr(best)) { // those without a truth are the last
		best--
	}
	out := []ranked{{"Best", r.items[best]}, {"Worst", r.items[0]}}
	if last > 1 && typical != best {
		out = slices.Insert(out, 0, ranked{"Typical", r.items[typical]})
	}
	return out
}

// example has the pictures of a measurement.
func (l *Listing) example(r problemRow, of ranked) example {
	first := of.rows[0]
	e := example{Rank: of.rank, Name: l.Names[l.Name[first]], ID: l.ID[first], Path: item.Key(l.ID[first], item.FileResult)}
	path := func(row int, file string) string {
		if !l.has(row, file) {
			return ""
		}
		return item.Key(l.ID[row], file)
	}
	add := func(row int, title, file, score string) {
		how := l.entries[max(row, first)]
		whole := max(1, smallest/max(1, how.Width)) // times the pixels
		e.Panes = append(e.Panes, pane{Title: title, Path: path(row, file), Score: score, Width: whole * how.Width, Height: whole * how.Height})
	}
	if v := l.of(first, entry.Baseline); statistic.Defined(v) {
		e.From = decimal(v, false)
	}
	add(first, "degraded", item.FileMeasurement, e.From)
	for k, row := range of.rows {
		score := ""
		if row >= 0 {
			if v := l.of(row, metric.NamePSNR); statistic.Defined(v) {
				score = decimal(v, false)
			}
		}
		if k == 0 {
			e.Score = score
		}
		add(row, r.title(l, k), item.FileRestored, score)
		e.Panes[len(e.Panes)-1].Over = path(first, item.FileMeasurement)
	}
	if l.has(first, item.FileTruth) {
		add(first, truthTitle, item.FileTruth, "")
	}
	return e
}

// rowsOf are the rows of the listing of all shown pictures, so that their files are copied.
func (p *pictures) rowsOf(l *Listing) (out []int) {
	for _, problem := range p.Problems {
		for _, e := range problem.Examples {
			for _, pane := range e.Panes {
				if id, ok := strings.CutPrefix(pane.Path, "items/"); ok {
					id, _, _ = strings.Cut(id, "/")
					out = append(out, l.rows[id])
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
