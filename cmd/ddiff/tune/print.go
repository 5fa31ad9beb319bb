package tune

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/report"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/metric"
	"ddiff/internal/tune"
	"ddiff/storage"
)

// print writes the plan of a tuning.
func (t *tuning) print(w io.Writer, asJSON bool) error {
	type plannedContest struct {
		sweep.Problem
		Method   string   `json:"method"`
		Settings []string `json:"settings"`
	}
	var contests []plannedContest
	settings := 0
	for _, c := range t.contests {
		p := plannedContest{Problem: c.problem, Method: c.method}
		for _, cell := range c.cells {
			p.Settings = append(p.Settings, cell.settings)
		}
		settings += len(p.Settings)
		contests = append(contests, p)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{
			"folds": t.folds, "contests": contests, "settings": settings, "unreadable": t.unreadable(), "out": t.spec.Output,
		})
	}
	out := table.NewWriter(w)
	for k, f := range t.folds {
		for _, side := range []struct {
			name   string
			images []tune.Image
		}{{"tune", f.Tune}, {"test", f.Test}} {
			names := cli.Clean(imageNames(side.images))
			slices.Sort(names)
			const shown = 20
			more := ""
			if len(names) > shown {
				more = fmt.Sprintf(" and %d more", len(names)-shown)
				names = names[:shown]
			}
			fmt.Fprintf(out, "fold %d, %s: %d images: %s%s\n", k+1, side.name, len(side.images), strings.Join(names, " "), more)
		}
	}
	fmt.Fprintln(out, "TASK\tPROBLEM\tMETHOD\tSETTINGS")
	for _, c := range contests {
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\n", c.Task, problemCell(c.Problem), c.Method, len(c.Settings))
	}
	first := t.folds[0]
	fmt.Fprintf(out, "tune=%d test=%d folds=%d settings=%d out=%s\n", len(first.Tune), len(first.Test), len(t.folds), settings, t.spec.Output)
	return out.Flush()
}

// print writes the figures of the chosen settings, and what was not run.
func (o *tuneOutcome) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(o)
	}
	out := table.NewWriter(w)
	fmt.Fprint(out, "TASK\tPROBLEM\tMETHOD\tSETTINGS\tCHOSEN\tN")
	for _, m := range metric.Builtin().Comparing() {
		fmt.Fprint(out, "\t", strings.ToUpper(m.Title), "\t±95%")
	}
	fmt.Fprintln(out)
	for _, one := range o.Tests {
		chosen := slices.Clone(one.variants)
		if len(slices.Compact(slices.Clone(chosen))) == 1 {
			chosen = chosen[:1]
		}
		row := []string{one.Task, problemCell(one.Problem), one.Method, strconv.Itoa(one.Cells), strings.Join(chosen, " | "), strconv.Itoa(len(one.Images))}
		for _, m := range metric.Builtin().Comparing() {
			row = append(row, table.Mean(one.Metrics[m.Name], m.Decimals, "-"), table.Half(one.Metrics[m.Name], m.Decimals, "-"))
		}
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, note := range o.notes() {
		if _, err := fmt.Fprintln(w, cli.Escape(note, "")); err != nil {
			return err
		}
	}
	first := o.Folds[0]
	_, err := fmt.Fprintf(w, "report: %s\ntune=%d test=%d folds=%d stopped=%d not_run=%d evaluations=%d test_evaluations=%d out=%s\n",
		storage.Locate(o.Out, report.KeyPage), len(first.Tune), len(first.Test), len(o.Folds), o.Stopped, o.NotRun, o.Evaluations, o.TestEvaluations, o.Out)
	return err
}

// notes are the sentences below the table.
func (o *tuneOutcome) notes() []string {
	var out []string
	if o.Split.Folds > 0 {
		out = append(out, fmt.Sprintf("The figures are means over all images, in %d parts; the settings of each image were chosen on the other parts. "+
			"Settings of several parts are separated by a bar.", o.Split.Folds))
	} else {
		out = append(out, "The figures are means over the test images; the settings were chosen on other images.")
	}
	out = append(out, "Objective: "+o.Objective+". ±95%: half-width of the confidence interval of the mean.")
	for _, one := range o.Tests {
		if len(one.Failed) > 0 {
			out = append(out, fmt.Sprintf("%s, %s: not restored in every run: %s.", problemText(one.Problem), one.Method, strings.Join(one.Failed, ", ")))
		}
	}
	return out
}
