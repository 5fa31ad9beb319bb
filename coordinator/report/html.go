package report

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"strconv"

	"ddiff/manifest"
)

var (
	//go:embed report.html.tmpl
	pageTemplate string
	//go:embed style.css
	pageStyle string
	//go:embed report.js
	pageScript string
)

// page is the data of the template.
type page struct {
	Style  template.CSS
	Script template.JS

	Campaign   Campaign
	Facts      []fact
	Summary    Summary
	Columns    []string // headings of the columns with text, without the task's
	Metrics    []string // headings of the columns after the fixed ones
	Rows       []tableRow
	Settings   []setting
	Notes      []string
	Published  *publishedTable
	Sheets     []sheetLink
	Figures    []figureFile
	Links      []string
	Tasks      []option
	Methods    []string
	Failures   []failure
	MoreFailed int
	Items      []itemView
	// Hidden is the number of finished items that the page does not show.
	Hidden int
	// Thinned reports that a trace has more steps than its curves on the page.
	Thinned bool
	Data    pageData
}

// pageData is the input of the page's script; html/template escapes it.
type pageData struct {
	// Curves are the solver's curves by the item's number on the page.
	Curves map[string]*curves `json:"curves"`
}

// option is one choice of a filter.
type option struct{ Value, Label string }

type sheetLink struct{ Label, Path string }

// parts are the files that the page refers to, made before it.
type parts struct {
	sheets []sheetFile
	// figures are shown above the images, in this order.
	figures []figureFile
	// pictures are further pictures of an item, by its id. Each path is relative to the page.
	pictures map[string][]pictureFile
}

// figureFile is a statistical figure, stored as figures/NAME.svg and figures/NAME.png. SVG and PNG are its keys.
type figureFile struct{ Name, Caption, SVG, PNG string }

// pictureFile is a picture of an item beside truth, measurement and restoration.
type pictureFile struct{ Title, Path string }

type failure struct {
	Name, Task, Method string
	Run                int
	Outcome            manifest.Outcome
	Reason             string
}

// writePage renders and stores index.html. lost has an error for each listed trace that could not be read.
func writePage(
	ctx context.Context, store files, campaign Campaign, summary Summary, shown *gallery, with parts,
) (lost []error, err error) {
	p := newPage(campaign, summary, shown, with)
	variants := summary.variants()
	for i, e := range shown.excerpt() {
		view := newItemView(i, e, campaign.Tasks, variants[e.group()])
		if f, ok := store.(pictureCopier); ok {
			for _, file := range []string{manifest.FileTruth, manifest.FileMeasurement, manifest.FileRestored} {
				if !e.has(file) {
					continue
				}
				if err := f.copyPicture(ctx, manifest.ItemKey(e.ID, file)); err != nil {
					lost = append(lost, err)
				}
			}
		}
		if e.has(manifest.FileTrace) {
			c, err := readCurves(ctx, store, e)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("write %s: %w", KeyPage, ctx.Err())
			}
			if err != nil {
				lost = append(lost, err)
			} else if len(c.Step) > 0 {
				view.HasCurves = true
				p.Thinned = p.Thinned || c.Step[len(c.Step)-1] > len(c.Step)
				p.Data.Curves[strconv.Itoa(i)] = c
			}
		}
		p.Items = append(p.Items, view)
	}
	p.Hidden = summary.Done - len(p.Items)

	out, err := renderPage(p)
	if err != nil {
		return nil, err
	}
	return lost, put(ctx, store, KeyPage, out)
}

// pictureCopier is a store to which the pictures of the page are copied.
type pictureCopier interface {
	copyPicture(ctx context.Context, key string) error
}

func renderPage(p *page) ([]byte, error) {
	t, err := template.New(KeyPage).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse page template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("render %s: %w", KeyPage, err)
	}
	return out.Bytes(), nil
}

func newPage(campaign Campaign, summary Summary, shown *gallery, with parts) *page {
	p := &page{
		Style:    template.CSS(pageStyle),
		Script:   template.JS(pageScript),
		Campaign: campaign,
		Facts:    campaignFacts(campaign, summary),
		Summary:  summary,
		Columns:  pageColumns(summary.Varying),
		Metrics:  summary.extraColumns(),
		Rows:     tableRows(summary),
		Settings: tableSettings(summary),
		Notes:    notes(summary),
		Figures:  with.figures,
		Links:    []string{KeyCSV, KeySummaryJSON, KeySummaryMarkdown},
		Data:     pageData{Curves: make(map[string]*curves)},
	}
	if campaign.Published != nil {
		table := campaign.Published.table(summary, "–")
		p.Published = &table
	}
	for _, s := range with.sheets {
		p.Sheets = append(p.Sheets, sheetLink{s.Label, s.Key})
		p.Tasks = append(p.Tasks, option{s.Task, s.Label})
	}
	seen := make(map[string]bool)
	for _, r := range summary.Rows {
		if !seen[r.Method] {
			seen[r.Method] = true
			p.Methods = append(p.Methods, r.Method)
		}
	}
	for _, e := range shown.failures {
		p.Failures = append(p.Failures, failure{
			Name: e.Name, Task: campaign.Tasks.Label(e.Task), Method: e.Method, Run: e.Run, Outcome: e.Outcome, Reason: e.Reason,
		})
	}
	p.MoreFailed = summary.Failed + summary.Dead - len(p.Failures)
	return p
}
