package aggregate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
)

// Row has the means of one problem and approach. Different problems and settings are never averaged.
type Row struct {
	sweep.Cell
	// Preset is the name of the preset from which the settings came, if it is known.
	Preset string `json:"preset,omitempty"`
	// Label is the task's name for people. It is not part of the JSON object.
	Label string `json:"-"`
	// Images is the number of images with at least one finished run; Measurements is the number of their measurements, one
	// for all names of an image.
	Images       int `json:"images"`
	Measurements int `json:"measurements"`
	// Items counts all items of the row; Failed and Dead count the items that did not finish.
	Items  int `json:"items"`
	Failed int `json:"failed,omitempty"`
	Dead   int `json:"dead,omitempty"`
	// Warned counts the finished items with warnings, Warnings those with a warning of a code.
	Warned   int            `json:"warned,omitempty"`
	Warnings map[string]int `json:"warnings,omitempty"`
	// Precisions counts the finished items by the precision of the score network, as far as it is known.
	Precisions map[string]int `json:"precisions,omitempty"`
	// besideFixed: the row fixes no precision, and another one of the summary does.
	besideFixed bool
	// TunedImages is the number of images of the row with which ddiff tune chose its settings, PresetImages that of images
	// with which values of its preset were chosen: figures on them are too good.
	TunedImages  int `json:"tuned_images,omitempty"`
	PresetImages int `json:"preset_images,omitempty"`

	// Means are the means of the figures of [entry.Columns.Figures] by their names, without undefined ones. Seconds and cost are those of all runs if the
	// rule chooses among runs.
	Means map[string]statistic.Estimate `json:"figures,omitempty"`
	// BetweenRuns compares the runs of one measurement, if there are several. Only a whole report has it.
	BetweenRuns *BetweenRuns `json:"between_runs,omitempty"`

	// Runs counts the finished runs of the measurements.
	Runs int `json:"-"`
	// Chosen: the rule chose among several runs of a measurement.
	Chosen bool `json:"-"`
	// VaryingParams and VaryingSettings are the parts in which the rows differ.
	VaryingParams   string `json:"-"`
	VaryingSettings string `json:"-"`

	group *entry.Group
}

// Finished are the finished measurements of the row, without copies; nil for a row of a stored summary.
func (r *Row) Finished() []*entry.Measurement {
	if r.group == nil {
		return nil
	}
	return r.group.Finished()
}

// PSNR is the mean PSNR in dB.
func (r *Row) PSNR() statistic.Estimate { return r.Means[metric.NamePSNR] }

// Marked reports whether an oracle chose the row's figures.
func (r *Row) Marked(oracle bool) bool { return oracle && r.Chosen }

// BetweenRuns compares the runs of the measurements of a row that have two finished runs or more, by their stored pictures.
type BetweenRuns struct {
	// Measurements were compared, of Of with several runs; a large row is sampled evenly. Runs is the number of their runs.
	Measurements int `json:"measurements"`
	Of           int `json:"of"`
	Runs         int `json:"runs"`
	// PSNROfMean is the PSNR of the mean picture of the runs, MeanPSNR the mean of the runs' PSNR, both in dB.
	PSNROfMean statistic.Estimate `json:"psnr_of_mean,omitzero"`
	MeanPSNR   statistic.Estimate `json:"mean_psnr,omitzero"`
	// Calibration is nil without a truth.
	Calibration *statistic.Calibration `json:"calibration,omitempty"`
}

// PrecisionText is the text of a row in the column of precisions: those that its items used, or the one that its campaign
// fixes. Beside rows of campaigns that fix a precision, those that fix none say so.
func (r *Row) PrecisionText() string {
	if len(r.Precisions) == 0 {
		return string(r.Precision)
	}
	text := strings.Join(slices.Sorted(maps.Keys(r.Precisions)), " and ")
	if r.besideFixed {
		text += " (not fixed)"
	}
	return text
}

// markUnfixed marks the rows that fix no precision, if another one does.
func markUnfixed(rows []Row) {
	fixed := slices.ContainsFunc(rows, func(r Row) bool { return r.Precision != "" })
	for i := range rows {
		rows[i].besideFixed = fixed && rows[i].Precision == ""
	}
}

// countFinished counts finished items: those with warnings by code, and in measured ones those of a known precision.
func (r *Row) countFinished(done []*entry.Entry, measured bool) {
	count := func(of *map[string]int, key string) {
		if *of == nil {
			*of = make(map[string]int)
		}
		(*of)[key]++
	}
	for _, e := range done {
		if e.Warnings != "" {
			r.Warned++
			for code := range strings.SplitSeq(e.Warnings, ";") {
				count(&r.Warnings, code)
			}
		}
		if measured && e.Used != "" {
			count(&r.Precisions, e.Used)
		}
	}
}

// Suspect reports whether at least half of the finished items have warnings.
func (r *Row) Suspect() bool { return r.Warned > 0 && 2*r.Warned >= r.Items-r.Failed-r.Dead }

// Warned returns the number of finished items with warnings, and those with a warning of each code.
func (s *Summary) Warned() (items int, codes map[string]int) {
	codes = make(map[string]int)
	for i := range s.Rows {
		items += s.Rows[i].Warned
		for code, n := range s.Rows[i].Warnings {
			codes[code] += n
		}
	}
	return items, codes
}

// WarningCounts lists the codes of warnings with the numbers of their items, sorted by code: "flat 1, residual 3".
func WarningCounts(codes map[string]int) string {
	var out []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		out = append(out, fmt.Sprintf("%s %d", code, codes[code]))
	}
	return strings.Join(out, ", ")
}
