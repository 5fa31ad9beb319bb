package aggregate

import (
	"ddiff/coordinator/report/statistic"
)

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
