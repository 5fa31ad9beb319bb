package page

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/figure"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// MaxListed bounds the items in the page's table; results.csv has all.
const MaxListed = 50_000

// Listing is the page's table of finished items: one column per field, in the order of the report. Names, Cells and Hows
// are the distinct values to which the columns Name, Cell and How refer.
type Listing struct {
	Names []string     `json:"names"`
	Cells []cellView   `json:"cells"`
	Hows  []*entry.How `json:"hows"`

	ID   []string `json:"id"`
	Name []int    `json:"name"`
	Cell []int    `json:"cell"`
	How  []int    `json:"how"`
	// Measurement is equal for the restorations of one measurement.
	Measurement []int `json:"measurement"`
	Run         []int `json:"run"`
	// Pictures has a bit for each of [entry.ItemFiles].
	Pictures []int `json:"pictures"`
	// Warnings has the codes of an item's warnings.
	Warnings []string `json:"warnings"`
	// Figures has a column for each of Metrics, by its name, and for PSNR of the degraded image, ratio of the residual and seconds.
	Metrics metric.Set               `json:"metrics"`
	Figures map[string]figure.Column `json:"figures"`

	entries []*entry.Entry

	left         map[sweep.Cell]int // places for the items of each row of the table
	names        map[string]int
	cells        map[sweep.Cell]int
	hows         map[*entry.How]int
	measurements map[[16]byte]int
	rows         map[string]int    // by the item's id
	labels       map[string]string // of the tasks
	first, last  time.Time         // when the first and the last item of all were restored
	variants     map[sweep.Cell]string
}

// cellView is the cell of an item; Variant tells it from the others of its task and method.
type cellView struct {
	sweep.Cell
	Label   string `json:"label"`
	Variant string `json:"variant"`
}

// NewListing returns a listing for at most limit of the items of the summary, an equal share of each row of its table, with the
// scores of the metrics.
func NewListing(summary aggregate.Summary, metrics []string, limit int) *Listing {
	l := &Listing{
		Names: []string{}, Cells: []cellView{}, Hows: []*entry.How{}, ID: []string{},
		left: make(map[sweep.Cell]int), names: make(map[string]int), cells: make(map[sweep.Cell]int), hows: make(map[*entry.How]int),
		measurements: make(map[[16]byte]int), rows: make(map[string]int), labels: make(map[string]string), Figures: make(map[string]figure.Column), variants: summary.Variants(),
	}
	for _, name := range metrics {
		l.Metrics = append(l.Metrics, metric.Describe(name))
	}
	for _, name := range append([]string{entry.Baseline, entry.Ratio, entry.Seconds}, metrics...) {
		l.Figures[name] = figure.Column{}
	}
	counts := make([]int, len(summary.Rows))
	for i := range summary.Rows {
		r := &summary.Rows[i]
		counts[i] = r.Items - r.Failed - r.Dead
		l.labels[r.Task] = r.Label
	}
	for i, n := range shares(counts, limit) {
		l.left[summary.Rows[i].Cell] = n
	}
	return l
}

// shares divides limit places among groups with the given numbers of items. Later groups share the places that a group leaves.
func shares(counts []int, limit int) []int {
	total := 0
	for _, n := range counts {
		total += n
	}
	out := make([]int, len(counts))
	for i, n := range counts {
		if total > limit {
			n = min(n, limit/(len(counts)-i))
		}
		out[i] = n
		limit -= n
		total -= counts[i]
	}
	return out
}

// Add lists an entry if it is finished and there is a place for it.
func (l *Listing) Add(e *entry.Entry) {
	if !e.Done() {
		return
	}
	if at := e.Finished; !at.IsZero() {
		if l.first.IsZero() || at.Before(l.first) {
			l.first = at
		}
		if at.After(l.last) {
			l.last = at
		}
	}
	if c := *e.Cell; l.left[c] > 0 {
		l.left[c]--
		l.add(e)
	}
}

// row returns the row of a finished entry, and adds it if it is not listed.
func (l *Listing) row(e *entry.Entry) int {
	if row, listed := l.rows[e.ID]; listed {
		return row
	}
	l.add(e)
	return len(l.ID) - 1
}

func (l *Listing) add(e *entry.Entry) {
	l.rows[e.ID] = len(l.ID)
	l.ID = append(l.ID, e.ID)
	l.Name = append(l.Name, place(l.names, &l.Names, e.Name, e.Name))
	c := *e.Cell
	l.Cell = append(l.Cell, place(l.cells, &l.Cells, c, cellView{Cell: c, Label: l.labels[e.Task], Variant: l.variants[c]}))
	l.How = append(l.How, place(l.hows, &l.Hows, e.How, e.How))
	if _, known := l.measurements[e.Target]; !known {
		l.measurements[e.Target] = len(l.measurements)
	}
	l.Measurement = append(l.Measurement, l.measurements[e.Target])
	l.Run = append(l.Run, e.Run)
	l.Pictures = append(l.Pictures, int(e.Files))
	l.Warnings = append(l.Warnings, e.Warnings)
	for name := range l.Figures {
		l.Figures[name] = append(l.Figures[name], e.Of(name))
	}
	l.entries = append(l.entries, e)
}

// of is a figure of a row.
func (l *Listing) of(row int, name string) float64 { return l.entries[row].Of(name) }

// place returns the position of a value among the distinct values, and adds the value if its key is new.
func place[K comparable, V any](seen map[K]int, values *[]V, key K, value V) int {
	at, known := seen[key]
	if !known {
		at = len(*values)
		seen[key] = at
		*values = append(*values, value)
	}
	return at
}

// has reports whether the item of a row, -1 for none, has a file.
func (l *Listing) has(row int, file string) bool {
	return row >= 0 && l.Pictures[row]&(1<<slices.Index(entry.ItemFiles[:], file)) != 0
}

// maxCopied bounds the items whose pictures a report over several outputs copies.
const maxCopied = 1000

// copied selects the rows whose pictures are copied: all within the limit; beyond it the given rows, then further
// restorations of their measurements.
func (l *Listing) copied(first []int, limit int) []int {
	chosen := make(map[int]bool)
	measured := make(map[int]bool)
	for _, row := range first {
		chosen[row] = true
		measured[l.Measurement[row]] = true
	}
	out := slices.Clone(first)
	for row := range l.ID {
		if len(out) < limit && !chosen[row] && (len(l.ID) <= limit || measured[l.Measurement[row]]) {
			out = append(out, row)
		}
	}
	return out
}

// copyPictures copies the pictures of the rows and removes the other rows' pictures from the listing. lost has an error
// for each picture that could not be read.
func (l *Listing) copyPictures(ctx context.Context, to pictureCopier, rows []int) (lost []error, err error) {
	present := make([]int, len(l.ID))
	for _, row := range rows {
		for bit, file := range entry.ItemFiles {
			if l.Pictures[row]&(1<<bit) == 0 || file == item.FileTrace {
				continue
			}
			if err := to.CopyPicture(ctx, item.Key(l.ID[row], file)); ctx.Err() != nil {
				return nil, fmt.Errorf("copy pictures: %w", ctx.Err())
			} else if err != nil {
				lost = append(lost, err)
			}
			present[row] |= 1 << bit
		}
	}
	l.Pictures = present
	return lost, nil
}
