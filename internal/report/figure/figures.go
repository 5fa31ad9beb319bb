// Package figure draws the statistical figures of a summary: each as SVG, with its data as CSV. It reads the traces of a bounded
// sample of items, and returns the curves that the page shows.
//
// A figure of a problem is one file here, one line in figureWriter.problem (problem.go), and its name in [Kinds] (figures.go), by which former
// files of it are found and deleted. A figure of the whole summary is made in sweepFigures (sweep.go), and its name in Kinds unless it begins with psnr_vs_. Data that no
// figure has needed before is collected in problemCell (problem.go). docs/results.md lists the figures.
package figure

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/chart"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
)

const (
	// Folder is before the keys of the figures of a report.
	Folder = "figures/"
	// KeyCaptions lists the figures with their captions, beside them.
	KeyCaptions = "captions.md"
)

// The kinds of figures: their names begin with these words.
const (
	figureSweep       = "psnr_vs_"
	figureConvergence = "convergence_"
	figurePairs       = "pairs_"
	figureResidual    = "residual_vs_psnr_"
)

// Kinds are the beginnings of the names of all figures.
func Kinds() []string {
	return []string{figureSweep, figureConvergence, figurePairs, figureResidual}
}

// Bounds of the figures of a report.
const (
	// maxProblems bounds the problems with figures of their own: the first in the order of the table.
	maxProblems = 16
	// maxLines bounds the lines of one panel, maxPanels the panels of one figure.
	maxLines  = 10
	maxPanels = 6
	// maxDots bounds the points of one approach in a scatter plot.
	maxDots = 1000
	// The traces that one line of a convergence figure needs at most, in a report and in figures alone.
	maxTraces, maxTracesAlone = 128, 2048
)

// drawing has the stored figures, and an error for each listed trace that could not be read.
type drawing struct {
	Stored []File
	Lost   []error
}

// Draw stores all figures of a summary below a folder: [Folder] in a report, "" in a store of figures alone, for which it reads more traces.
func Draw(
	ctx context.Context, store result.Files, folder string, summary aggregate.Summary,
) (drawing, error) {
	w := &figureWriter{store: store, folder: folder, summary: summary, traces: maxTraces}
	if folder == "" {
		w.traces = maxTracesAlone
	}
	err := w.writeAll(ctx)
	return w.drawing, err
}

// statFigure is a figure before it is drawn. The title of its chart is the first sentence of the caption; its width follows from the
// panels, of which up to three, or Columns, are beside each other.
type statFigure struct {
	chart.Chart
	// name is that of the files; it is made safe and distinct.
	name string
	// notes are the other sentences of the caption.
	notes []string
}

// omit notes that further lines, panels or approaches are not drawn.
func (f *statFigure) omit(n int, what string) {
	if n > 0 {
		f.notes = append(f.notes, "Not drawn: "+plural(n, what)+".")
	}
}

// empty reports whether no point can be drawn.
func (f *statFigure) empty() bool {
	return !slices.ContainsFunc(f.Panels, func(p chart.Panel) bool { return !p.Empty() })
}

func (f *statFigure) caption() string {
	return strings.Join(append([]string{f.Title + "."}, f.notes...), " ")
}

// figureHeader is the header of a figure's CSV file.
const figureHeader = "panel,series,x_name,x,y_name,y,low,high,n,image,item"

// csv returns the points of the figure, one row each. Undefined figures are empty cells.
func (f *statFigure) csv() ([]byte, error) {
	var out bytes.Buffer
	w := table.NewCSV(&out)
	out.WriteString(figureHeader + "\n")
	for _, p := range f.Panels {
		for _, s := range p.Series {
			for _, v := range s.Points {
				n := table.Number("")
				if v.N > 0 {
					n = table.Number(strconv.Itoa(v.N))
				}
				w.Line(p.Title, s.Label, p.XName, table.CSVFloat(v.X, 'g', 8), p.YName, table.CSVFloat(v.Y, 'g', 8),
					table.CSVFloat(v.Low, 'g', 8), table.CSVFloat(v.High, 'g', 8), n, v.Image, v.Item)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("figure %s: %w", f.name, err)
	}
	return out.Bytes(), nil
}

// figureWriter draws and stores the figures of a report.
type figureWriter struct {
	store result.Files
	// folder is before the keys of the files.
	folder  string
	summary aggregate.Summary
	traces  int // of a line, at most

	drawing
	used sweep.FileNames
}

// writeAll stores all figures and their captions, and removes those of an earlier report.
func (w *figureWriter) writeAll(ctx context.Context) error {
	w.used = make(sweep.FileNames)
	evaluations, err := w.problems(ctx)
	if err != nil {
		return err
	}
	own := w.Stored
	w.Stored = nil
	for _, f := range sweepFigures(w.summary, evaluations) {
		if err := w.add(ctx, f); err != nil {
			return err
		}
	}
	w.Stored = append(w.Stored, own...)
	if err := w.captions(ctx); err != nil {
		return err
	}
	return w.removeStale(ctx)
}

// add draws and stores a figure. A figure without points is not stored.
func (w *figureWriter) add(ctx context.Context, f *statFigure) error {
	if f.empty() {
		return nil
	}
	f.Width = chart.OneColumn
	if len(f.Panels) > 1 {
		f.Width, f.Columns = chart.TwoColumns, cmp.Or(f.Columns, 3)
	}
	if w.summary.Oracle {
		f.notes = append(f.notes, "Runs are "+selection.OracleNote+".")
	}
	f.name = w.used.Unique(f.name, "-_.")
	f.Description = sweep.Printable(f.caption())
	stored := File{
		Name: f.name, Caption: f.Description, SVG: w.folder + f.name + ".svg", CSV: w.folder + f.name + ".csv",
		Wide: f.Width == chart.TwoColumns, Sweep: strings.HasPrefix(f.name, figureSweep),
	}
	data, err := f.csv()
	if err != nil {
		return fmt.Errorf("draw figure %s: %w", f.name, err)
	}
	// The CSV file comes first: it tells a later report that the other is a figure of a report.
	if err := result.Put(ctx, w.store, stored.CSV, data); err != nil {
		return err
	}
	if err := result.Put(ctx, w.store, stored.SVG, f.SVG()); err != nil {
		return err
	}
	w.Stored = append(w.Stored, stored)
	return nil
}

// captions stores the list of the figures.
func (w *figureWriter) captions(ctx context.Context) error {
	var out bytes.Buffer
	out.WriteString("# Figures\n")
	for _, f := range w.Stored {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", f.Name, table.FormatMarkdown.Escape(f.Caption))
	}
	if len(w.Stored) == 0 {
		out.WriteString("\nNo figures: no restored item has a score or a trace that a figure could show.\n")
	}
	return result.Put(ctx, w.store, w.folder+KeyCaptions, out.Bytes())
}

// removeStale removes the figures that are not of this report.
func (w *figureWriter) removeStale(ctx context.Context) error {
	var names []string
	for _, kind := range Kinds() {
		for info, err := range w.store.List(ctx, w.folder+kind) {
			if err != nil {
				return fmt.Errorf("list %s%s: %w", w.folder, kind, err)
			}
			name, isData := strings.CutSuffix(strings.TrimPrefix(info.Key, w.folder), ".csv")
			if isData && !strings.Contains(name, "/") && !w.used[name] {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if err := w.removeFigure(ctx, w.folder+name); err != nil {
			return fmt.Errorf("remove figure %s of an earlier report: %w", name, err)
		}
	}
	return nil
}

// removeFigure removes the files of a figure, the CSV file last. Without the columns of a report they are somebody else's.
func (w *figureWriter) removeFigure(ctx context.Context, name string) error {
	own := w.store
	if folder, ok := w.store.(result.Folder); ok {
		own = folder.Files
	}
	data, err := own.Get(ctx, name+".csv")
	if err != nil || !bytes.HasPrefix(data, []byte(figureHeader)) {
		return err
	}
	for _, extension := range []string{".svg", ".csv"} {
		if err := w.store.Delete(ctx, name+extension); err != nil {
			return err
		}
	}
	return nil
}

// File is a statistical figure, stored as figures/NAME.svg, and its data, NAME.csv. SVG and CSV are their keys.
type File struct {
	Name, Caption, SVG, CSV string
	// Wide is set for figures of two columns, which get a row of their own on the page. Sweep: the figure is of all problems of a task.
	Wide, Sweep bool
}
