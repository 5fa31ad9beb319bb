package report

import (
	"strconv"
	"strings"
	"time"
)

// fact is one line about the campaign.
type fact struct{ Name, Value string }

func campaignFacts(c Campaign, s Summary, l *listing) []fact {
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
	if !s.Varying.Prior {
		add("Prior", prior)
	}
	if !s.Varying.Preset {
		add("Preset", c.Preset)
	}
	if r := s.resolvedRow(); r != nil && !s.Varying.Precision {
		add("Precision", r.precisionText())
	}
	if c.Steps > 0 {
		add("Steps", strconv.Itoa(c.Steps))
	}
	if r := s.resolvedRow(); r != nil && !s.Varying.Sigma {
		add("Noise σ", r.Sigma.String())
	}
	if r := s.resolvedRow(); r != nil && !s.Varying.Photons {
		add("Photons of a white pixel", r.photonsText())
	}
	if r := s.resolvedRow(); r != nil && !s.Varying.Size {
		add("Size", r.Size)
	}
	if len(c.Outputs) > 0 {
		add("Outputs", strings.Join(c.Outputs, ", "))
	} else {
		add("Seed", strconv.FormatUint(c.Seed, 10))
	}
	add("Runs", s.Rule.sentence()+" ("+string(s.Rule)+")")
	if !l.first.IsZero() {
		add("Restored", moment(l.first)+" to "+moment(l.last))
	}
	return facts
}

// resolvedRow returns a row with known parameters and settings, or nil.
func (s Summary) resolvedRow() *Row {
	for i := range s.Rows {
		if s.Rows[i].group().resolved() {
			return &s.Rows[i]
		}
	}
	return nil
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// tableRow is one row of the summary table on the page.
type tableRow struct {
	Label string
	// Labels are the texts of the further columns with text.
	Labels []string
	Cells  []tableCell
}

// pageColumns are the headings of the columns with text, without the task's.
func pageColumns(v Varying) []string {
	columns := labelColumns(v)[1:]
	for i, c := range columns {
		columns[i] = strings.ToUpper(c[:1]) + c[1:]
	}
	return columns
}

// tableCell is a figure. Value is its sort key, empty for an undefined figure.
type tableCell struct {
	Text, Half, Value string
	Best              bool
}

func tableRows(s Summary) []tableRow {
	marks := best(s)
	rows := make([]tableRow, 0, len(s.Rows))
	for i := range s.Rows {
		r := &s.Rows[i]
		texts := figureCells(s, r, "–")
		cell := func(column int, e Estimate) tableCell {
			c := tableCell{Text: texts[column], Best: marks[[2]int{i, column}]}
			if e.N > 0 {
				c.Value = exact(e.Mean)
			}
			return c
		}
		psnr := cell(columnPSNR, r.PSNR)
		if r.PSNR.HalfWidth != nil {
			psnr.Half = "±\u202f" + decimal(*r.PSNR.HalfWidth, 2)
		}
		row := tableRow{
			Label:  r.Label,
			Labels: labelCells(s.Varying, r, "–")[1:],
			Cells: []tableCell{
				{Text: texts[columnImages], Value: texts[columnImages]},
				psnr,
				cell(columnBaseline, r.Baseline), cell(columnGain, r.Gain), cell(columnSSIM, r.SSIM),
				cell(columnResidual, r.Residual), cell(columnSeconds, r.Seconds),
			},
		}
		for k, name := range s.extraColumns() {
			row.Cells = append(row.Cells, cell(columnSeconds+1+k, r.extraFigure(name)))
		}
		for i, k := range s.costColumns() {
			row.Cells = append(row.Cells, cell(columnSeconds+1+len(s.extraColumns())+i, r.Cost[costNames[k]]))
		}
		rows = append(rows, row)
	}
	return rows
}

// setting is the complete parameters and settings of one row.
type setting struct{ Task, Params, Method, Settings string }

// tableSettings lists what produced the rows of the table.
func tableSettings(s Summary) []setting {
	var out []setting
	seen := make(map[setting]bool)
	for i := range s.Rows {
		r := &s.Rows[i]
		line := setting{r.Label, strings.ReplaceAll(r.Params, ";", "; "), r.Method, strings.ReplaceAll(r.Settings, ";", "; ")}
		if r.group().resolved() && !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
