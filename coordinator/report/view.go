package report

import (
	"net/url"
	"strconv"
	"time"

	"ddiff/manifest"
	"ddiff/restore/operator"
)

// fact is one line about the campaign.
type fact struct{ Name, Value string }

func campaignFacts(c Campaign, s Summary) []fact {
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
	add("Prior", prior)
	add("Preset", c.Preset)
	if c.Steps > 0 {
		add("Steps", strconv.Itoa(c.Steps))
	}
	add("Noise σ", strconv.FormatFloat(c.Sigma, 'g', -1, 64))
	add("Seed", strconv.FormatUint(c.Seed, 10))
	add("Runs", s.Rule.sentence()+" ("+string(s.Rule)+")")
	if !c.Started.IsZero() {
		add("Started", moment(c.Started))
	}
	if !c.Finished.IsZero() {
		add("Finished", moment(c.Finished))
	}
	if !c.Started.IsZero() && c.Finished.After(c.Started) {
		add("Duration", c.Finished.Sub(c.Started).Round(time.Second).String())
	}
	return facts
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// tableRow is one row of the summary table on the page.
type tableRow struct {
	Task   option
	Method string
	Cells  []tableCell
}

// tableCell is a figure. Value is its sort key, empty for an undefined figure.
type tableCell struct {
	Text, Half, Value string
	Best              bool
}

func tableRows(s Summary) []tableRow {
	marks := best(s)
	rows := make([]tableRow, 0, len(s.Rows))
	for i, r := range s.Rows {
		texts := tableCells(r, s.Oracle, "–")
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
		rows = append(rows, tableRow{
			Task:   option{r.Task, r.Label},
			Method: r.Method,
			Cells: []tableCell{
				{Text: texts[columnImages], Value: texts[columnImages]},
				psnr,
				cell(columnBaseline, r.Baseline), cell(columnGain, r.Gain), cell(columnSSIM, r.SSIM),
				cell(columnResidual, r.Residual), cell(columnSeconds, r.Seconds),
			},
		})
	}
	return rows
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// itemView is one finished item on the page.
type itemView struct {
	Number               int
	Name, ID             string
	Task                 option
	Method               string
	Run, Steps           int
	Size                 string
	Seconds, Provider    string
	PSNR, Baseline, Gain string
	Loss                 bool // the degraded image is closer to the truth than the restored image
	SSIM, Residual       string
	// SortPSNR, SortGain and SortResidual are exact, or empty if undefined.
	SortPSNR, SortGain, SortResidual string
	Pictures                         []pictureView
	HasCurves                        bool
}

// pictureView is a picture of an item. The path is empty if the item lacks the picture.
type pictureView struct{ Kind, Title, Path, Alt string }

func newItemView(number int, e *entry, tasks operator.Set) itemView {
	label := tasks.Label(e.Task)
	s := &e.Scores
	v := itemView{
		Number: number, Name: e.Name, ID: e.ID,
		Task: option{e.Task, label}, Method: e.Method, Run: e.Run,
		Steps: e.Steps, Seconds: decimal(s.Seconds, 1), Provider: e.Provider,
		Size: strconv.Itoa(e.Width) + "\u202f×\u202f" + strconv.Itoa(e.Height),
	}
	if defined(s.PSNR) {
		v.PSNR, v.SortPSNR = decimal(s.PSNR, 2), exact(s.PSNR)
	}
	if d := s.PSNR - s.Baseline; defined(d) {
		v.Baseline, v.Gain, v.SortGain = decimal(s.Baseline, 2), signed(d, 2), exact(d)
		v.Loss = d < 0
	}
	if defined(s.SSIM) {
		v.SSIM = decimal(s.SSIM, 3)
	}
	if defined(s.Residual) {
		v.Residual, v.SortResidual = decimal(s.Residual, 4), exact(s.Residual)
	}
	for _, p := range []struct{ kind, title, file string }{
		{"truth", "Truth", manifest.FileTruth},
		{"measurement", "Measurement", manifest.FileMeasurement},
		{"restored", "Restored", manifest.FileRestored},
	} {
		view := pictureView{Kind: p.kind, Title: p.title}
		if e.has(p.file) {
			view.Path = manifest.ItemKey(url.PathEscape(e.ID), p.file)
			view.Alt = p.title + ": " + e.Name + ", " + label
		}
		v.Pictures = append(v.Pictures, view)
	}
	return v
}
