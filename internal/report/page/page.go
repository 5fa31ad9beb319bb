// Package page makes the page of a report from its parts: tables, the list of items, the mosaic, curves. What needs no script is in the template;
// style and script are in dist, which internal/coordinator/serve/page builds from the components of the page of campaigns. A further section is a field of page
// and its part of the template.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"strconv"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/figure"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sheet"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
)

var (
	//go:embed report.html.tmpl
	pageTemplate string
	//go:embed dist/style.css
	pageStyle string
	//go:embed dist/script.js
	pageScript string
)

// ScriptSource names the page's script in a Content-Security-Policy, which then lets no other one run.
func ScriptSource() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is the data of the template.
type page struct {
	Style  template.CSS
	Script template.JS

	Campaign Campaign
	Summary  aggregate.Summary
	Lead     string
	Files    []fileLink
	Care     []table.Note
	Pictures pictures
	// Means are the columns of the first sight, Further the others, Notes the sentences about both by their place.
	Means, Further means
	Notes          [table.Nowhere + 1][]string
	Gains, Pairs   *plot
	Matrix         *matrix
	Published      *table.Table
	Runs           *table.Table
	// Figures are shown at once, MoreFigures on a click.
	Figures, MoreFigures []figure.File
	Settings, Shared     []setting
	Facts                []fact
	Failures             []failure
	MoreFailed           int
	// Listed is the number of items in the page's table, Hidden the number of other finished items.
	Listed, Hidden int
	Data           pageData
	// Curves are the solver's curves of a selection of items by their row. The page parses them when they are needed.
	Curves map[string]*figure.Curves
}

// fileLink is a file beside the page; Size is empty if it is written later.
type fileLink struct{ Key, Size string }

// pageData is the input of the page's script; html/template escapes it.
type pageData struct {
	Items *Listing `json:"items"`
	// Pictures are the further pictures of an item, by its id.
	Pictures map[string][]PictureFile `json:"pictures"`
}

// maxFigures bounds the figures that the page shows at once.
const maxFigures = 6

// Parts are the files that the page refers to, made before it.
type Parts struct {
	List    *Listing
	Mosaic  bool // there is one
	Sheets  []sheet.File
	Figures []figure.File
	// Pictures are further pictures of an item, by its id. Each path is relative to the page.
	Pictures map[string][]PictureFile
}

// PictureFile is a picture of an item beside truth, measurement and restoration.
type PictureFile struct {
	Title string `json:"title"`
	Path  string `json:"path"`
}

type failure struct {
	Name, Task, Method string
	Run                int
	Outcome            item.Outcome
	Reason             string
}

// Write renders and stores index.html. lost has an error for each listed trace that could not be read.
func Write(
	ctx context.Context, store result.Files, campaign Campaign, summary aggregate.Summary, shown *Gallery, with Parts,
) (lost []error, err error) {
	curvesOf := make(map[string]*figure.Curves)
	var rows []int
	for _, e := range shown.Excerpt() {
		row := with.List.row(e)
		rows = append(rows, row)
		if !e.Has(item.FileTrace) {
			continue
		}
		c, err := figure.ReadCurves(ctx, store, e)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("write %s: %w", Key, ctx.Err())
		}
		if err != nil {
			lost = append(lost, err)
		} else if len(c.Step) > 0 {
			curvesOf[strconv.Itoa(row)] = c
		}
	}
	p := newPage(campaign, summary, shown, with)
	if to, ok := store.(pictureCopier); ok {
		rows = append(p.Pictures.rowsOf(with.List), rows...)
		missing, err := with.List.copyPictures(ctx, to, with.List.copied(rows, maxCopied))
		if err != nil {
			return nil, err
		}
		lost = append(lost, missing...)
	}
	p.Curves = curvesOf
	if p.Files, err = fileLinks(ctx, store, with.Mosaic); err != nil {
		return nil, err
	}
	out, err := renderPage(p)
	if err != nil {
		return nil, err
	}
	return lost, result.Put(ctx, store, Key, out)
}

// pictureCopier is a store to which the pictures of the page are copied.
type pictureCopier interface {
	CopyPicture(ctx context.Context, key string) error
}

func renderPage(p *page) ([]byte, error) {
	t, err := template.New(Key).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse page template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("render %s: %w", Key, err)
	}
	return out.Bytes(), nil
}

// fileLinks are the files to take along.
func fileLinks(ctx context.Context, store result.Files, mosaic bool) (out []fileLink, err error) {
	for _, key := range []string{table.KeyCSV, table.KeySummaryJSON, table.KeySummaryMarkdown, KeyMosaic, figure.Folder + figure.KeyCaptions} {
		for info, err := range store.List(ctx, key) {
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", key, err)
			}
			if info.Key == key && (key != KeyMosaic || mosaic) {
				out = append(out, fileLink{key, bytesText(info.Size)})
			}
		}
	}
	return out, nil
}

// bytesText is a size of a file.
func bytesText(n int64) string {
	if n < 1e6 {
		return strconv.FormatInt((n+999)/1000, 10) + "\u00a0kB"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "\u00a0MB"
}

func newPage(campaign Campaign, summary aggregate.Summary, shown *Gallery, with Parts) *page {
	if with.Pictures == nil {
		with.Pictures = map[string][]PictureFile{}
	}
	all := table.Of(summary, "–")
	p := &page{
		Style:    template.CSS(pageStyle),
		Script:   template.JS(pageScript), //nolint:gosec // our own file
		Campaign: campaign,
		Summary:  summary,
		Lead:     lead(campaign, summary, shown),
		Pictures: newPictures(summary, with.List, with.Sheets, campaign.Tasks),
		Gains:    newGains(summary),
		Pairs:    newPairs(summary, campaign.Tasks),
		Matrix:   newMatrix(summary),
		Runs:     newRunsTable(summary, all),
		Facts:    campaignFacts(campaign, summary, with.List, shown),
		Listed:   len(with.List.ID),
		Hidden:   summary.Done - len(with.List.ID),
		Data:     pageData{Items: with.List, Pictures: with.Pictures},
	}
	p.Means, p.Further = newMeans(summary, all)
	p.Means.addRanges(summary)
	p.Settings, p.Shared = tableSettings(summary)
	for _, n := range all.Notes {
		if n.Care != "" {
			p.Care = append(p.Care, n)
		} else {
			p.Notes[n.Place] = append(p.Notes[n.Place], n.Text)
		}
	}
	if note := widthNote(summary); note != nil {
		p.Care = append(p.Care, *note)
	}
	if campaign.Published != nil {
		published := campaign.Published.Table(summary, "–")
		p.Published = &published
	}
	for _, f := range with.Figures {
		if f.Sweep && len(p.Figures) < maxFigures {
			p.Figures = append(p.Figures, f)
		} else {
			p.MoreFigures = append(p.MoreFigures, f)
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

// fewImages is the number of images below which intervals are wide.
const fewImages = 10

// widthNote says how closely the mean PSNR of few images is known; nil of many.
func widthNote(s aggregate.Summary) *table.Note {
	most, best := 0, math.Inf(1)
	for i := range s.Rows {
		e := s.Rows[i].PSNR()
		if most = max(most, e.N); e.HalfWidth != nil {
			best = min(best, *e.HalfWidth)
		}
	}
	switch {
	case most == 0 || most >= fewImages:
		return nil
	case most == 1:
		return &table.Note{Care: "One image", Text: "There are no intervals, and nothing says how another image would fare."}
	}
	return &table.Note{Care: "Few images make wide intervals", Text: fmt.Sprintf("With %s the mean PSNR is known to ± %s dB at best. Gains are firmer: each image is its own control.",
		inWords(most, "image", "images"), table.Decimal(best, 1))}
}

// Key is the key of the page.
const Key = "index.html"
