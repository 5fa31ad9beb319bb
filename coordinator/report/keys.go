package report

import (
	"ddiff/coordinator/report/figure"
	"ddiff/coordinator/report/page"
	"ddiff/coordinator/report/table"
)

// Campaign describes the campaign on the page.
type Campaign = page.Campaign

// The keys of a report's files. The keys of the sheets follow the names of the tasks.
const (
	KeyCSV             = table.KeyCSV
	KeyPage            = page.Key
	KeyMosaic          = page.KeyMosaic
	KeySummaryJSON     = table.KeySummaryJSON
	KeySummaryMarkdown = table.KeySummaryMarkdown
	// FigureFolder is before the keys of the figures.
	FigureFolder = figure.Folder
	KeyCaptions  = figure.KeyCaptions
)
