package page

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/table"
)

// fact is one line about the campaign.
type fact struct{ Name, Value string }

func campaignFacts(c Campaign, s aggregate.Summary, l *Listing) []fact {
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	prior := c.Prior
	if prior != "" && c.PriorLicence != "" {
		prior += " (" + c.PriorLicence + ")"
	}
	if !s.Varying.Prior { // otherwise a column of the table has it
		add("Prior", prior)
	}
	if len(c.Outputs) > 0 {
		add("Outputs", strings.Join(c.Outputs, ", "))
	} else {
		add("Seed", strconv.FormatUint(c.Seed, 10))
	}
	if !l.first.IsZero() {
		add("Restored", moment(l.first)+" to "+moment(l.last))
	}
	return facts
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// tableRow is one row of the summary table on the page.
type tableRow struct {
	Label   string
	Suspect bool
	// Labels are the further columns with text.
	Labels  []table.Cell
	Figures []figureCell
}

// figureCell is a figure with half of its interval.
type figureCell struct {
	table.Cell
	Half string
}

// tableRows are the lines of the summary's table, with the intervals beside the PSNR.
func tableRows(s aggregate.Summary, t table.Table) []tableRow {
	rows := make([]tableRow, 0, len(s.Rows))
	half := slices.Index(t.Head, "±95%")
	for i, line := range t.Lines {
		row := tableRow{Label: s.Rows[i].Label, Suspect: s.Rows[i].Suspect(), Labels: line[1:t.Labels]}
		for _, c := range slices.Delete(slices.Clone(line), half, half+1)[t.Labels:] {
			row.Figures = append(row.Figures, figureCell{Cell: c})
		}
		if h := s.Rows[i].PSNR().HalfWidth; h != nil {
			row.Figures[half-t.Labels-1].Half = "±\u202f" + line[half].Text
		}
		rows = append(rows, row)
	}
	return rows
}

// capitals begins headings with capital letters.
func capitals(headings []string) []string {
	out := make([]string, len(headings))
	for i, h := range headings {
		out[i] = strings.ToUpper(h[:1]) + h[1:]
	}
	return out
}

// setting is the complete parameters and settings of one row.
type setting struct{ Task, Params, Method, Settings string }

// tableSettings lists what produced the rows of the table.
func tableSettings(s aggregate.Summary) []setting {
	var out []setting
	seen := make(map[setting]bool)
	for i := range s.Rows {
		r := &s.Rows[i]
		line := setting{r.Label, strings.ReplaceAll(r.Params, ";", "; "), r.Method, strings.ReplaceAll(r.Settings, ";", "; ")}
		if r.Cell().Resolved() && !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out
}
