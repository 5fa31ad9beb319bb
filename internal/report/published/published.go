// Package published compares a summary with the figures of a publication, which it reads from a CSV file. A further circumstance that
// makes figures incomparable is one condition here.
package published

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/failure"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// ErrPublished: a file of published figures cannot be read.
var ErrPublished = failure.New(failure.Input, "published figures")

// Figures are the figures of a publication, with which [Write] compares a summary.
type Figures struct {
	// Name is the name of the file.
	Name string
	// Source has the comment lines at the beginning of the file, which cite the publication.
	Source string
	// Priors names priors by their SHA-256 that are certainly not the publication's, such as the bundled one. It may be nil.
	Priors map[string]string

	rows []row
}

// row has the figures of one task and method: the texts of its columns, empty where the publication has none. A circumstance that is a number
// is in its shortest form.
type row map[string]string

// publishedFigure is a figure that publications report.
type publishedFigure struct {
	name, heading string
	decimals      int
	of            func(*aggregate.Row) statistic.Estimate
	shown         bool // the results have it
}

func publishedFigures() []publishedFigure {
	var out []publishedFigure
	for _, m := range metric.Builtin().Main() {
		out = append(out, publishedFigure{m.Name, m.Title, m.Decimals, func(r *aggregate.Row) statistic.Estimate { return r.Means[m.Name] }, false})
	}
	return append(out, publishedFigure{"lpips", "LPIPS", 3, lpips, false})
}

// figures are those that the publication has.
func (p *Figures) figures() []publishedFigure {
	return slices.DeleteFunc(publishedFigures(), func(f publishedFigure) bool {
		return !slices.ContainsFunc(p.rows, func(r row) bool { return r[f.name] != "" })
	})
}

// lpips is the row's score with a network, if the results have scores with one network alone: publications rarely name theirs.
func lpips(r *aggregate.Row) statistic.Estimate {
	if names := lpipsNames(r); len(names) == 1 {
		return r.Means[names[0]]
	}
	return statistic.Estimate{}
}

func lpipsNames(r *aggregate.Row) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Means)), func(name string) bool { return !strings.HasPrefix(name, "lpips") })
}

// The circumstances of published figures, which are columns of the file. They are compared with those of the results, except
// for data and prior, for which a program has no name.
const (
	conditionData   = "data"
	conditionPrior  = "prior"
	conditionImages = "images"
	conditionSize   = "size"
	conditionSigma  = "sigma"
	conditionPreset = "preset"
	conditionSteps  = "steps"
	conditionRuns   = "runs"
	conditionSelect = "select"
	// conditionMetrics are versioned ids, separated by spaces, without the digests of networks.
	conditionMetrics = "metrics"
)

func publishedConditions() []string {
	return []string{
		conditionImages, conditionSize, conditionSigma, conditionPreset, conditionSteps, conditionRuns, conditionSelect, conditionMetrics, conditionData,
		conditionPrior,
	}
}

// MaxSize is the largest file that [Parse] reads, in bytes.
const MaxSize = 1 << 20

// Parse reads the CSV file of a publication's figures. Comment lines begin with #. The columns, in any order:
// task and method, which are required; table; data, images, size (as in 256x256), sigma, prior, preset, steps, runs, select and metrics (as in psnr@1
// ssim@1), the circumstances; lpips and the main metrics by their names, with the half-widths of their 95 % intervals, such as psnr_half; remark. Name is the name of the file in errors, which wrap [ErrPublished] and name the line.
func Parse(name string, r io.Reader) (*Figures, error) {
	p := &Figures{Name: name}
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read %s: %w", ErrPublished, name, err)
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w: %s is larger than 1 MiB; give a table of published figures", ErrPublished, name)
	}
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		p.Source = strings.TrimSpace(p.Source + " " + strings.TrimSpace(comment))
	}
	in := csv.NewReader(strings.NewReader(string(text)))
	in.Comment = '#'
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s is empty; it needs a line with the names of the columns", ErrPublished, name)
	}
	if err == nil {
		err = checkPublishedHead(head)
	}
	for err == nil {
		err = p.readRow(in, head)
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s: %w", ErrPublished, name, err)
	}
	if len(p.rows) == 0 {
		return nil, fmt.Errorf("%w: %s has no row; add one per task and method", ErrPublished, name)
	}
	return p, nil
}

// readRow adds a row. It returns io.EOF after the last one.
func (p *Figures) readRow(in *csv.Reader, head []string) error {
	cells, err := in.Read()
	if err != nil {
		return err
	}
	line, _ := in.FieldPos(0)
	r, err := parseRow(head, cells)
	if err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	if p.find(r["task"], r["method"]) != nil {
		return fmt.Errorf("line %d: repeats task %s and method %s; remove one", line, r["task"], r["method"])
	}
	p.rows = append(p.rows, r)
	return nil
}

// find returns the row of a task and method, or nil.
func (p *Figures) find(task, method string) row {
	for _, r := range p.rows {
		if r["task"] == task && r["method"] == method {
			return r
		}
	}
	return nil
}

// publishedColumns are all columns of the file.
func publishedColumns() []string {
	columns := append([]string{"table", "task", "method", "remark"}, publishedConditions()...)
	for _, f := range publishedFigures() {
		columns = append(columns, f.name, f.name+"_half")
	}
	return columns
}

func checkPublishedHead(head []string) error {
	known := publishedColumns()
	for i, column := range head {
		switch {
		case !slices.Contains(known, column):
			return fmt.Errorf("column %q is unknown; use %s", column, strings.Join(known, ", "))
		case slices.Contains(head[:i], column):
			return fmt.Errorf("column %q is repeated; remove one", column)
		}
	}
	for _, column := range []string{"task", "method"} {
		if !slices.Contains(head, column) {
			return fmt.Errorf("has no column %q; add it", column)
		}
	}
	return nil
}

// numbers are the circumstances that are numbers.
var numbers = []string{conditionImages, conditionSigma, conditionSteps, conditionRuns}

func parseRow(head, cells []string) (row, error) {
	r := row{}
	for i, column := range head {
		text := strings.TrimSpace(cells[i])
		isFigure := slices.ContainsFunc(publishedFigures(), func(f publishedFigure) bool { return column == f.name || column == f.name+"_half" })
		if isNumber := slices.Contains(numbers, column); text != "" && (isNumber || isFigure) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%s: %q is not a number", column, text)
			}
			if isNumber {
				text = sweep.Exact(x)
			}
		}
		r[column] = text
	}
	if r["task"] == "" || r["method"] == "" {
		return nil, errors.New("task or method is empty; give both")
	}
	return r, nil
}

// compared are our estimate of a figure, N 0 for none, and the difference to theirs, NaN for none.
func (f publishedFigure) compared(ours *aggregate.Row, theirs row) (e statistic.Estimate, difference float64) {
	if ours != nil {
		e = f.of(ours)
	}
	mean, err := strconv.ParseFloat(theirs[f.name], 64)
	if err != nil || e.N == 0 {
		return e, math.NaN()
	}
	return e, e.Mean - mean
}
