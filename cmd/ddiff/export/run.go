package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/internal/cli/resultname"
)

// exportedRun is a row of a summary in the terms of experiment trackers: one run.
type exportedRun struct {
	// id has 32 hexadecimal digits. It depends on the problem and the approach only.
	id string
	// name is task, varying properties and method.
	name             string
	params, settings map[string]string
	// config has the other properties of the row.
	config  map[string]string
	metrics map[string]float64
}

func newExportedRuns(s aggregate.Summary) ([]exportedRun, error) {
	cells := make([]sweep.Cell, len(s.Rows))
	for i := range s.Rows {
		cells[i] = sweep.Cell{Problem: s.Rows[i].Problem, Approach: s.Rows[i].Approach}
	}
	names := resultname.Cells(cells)
	runs := make([]exportedRun, len(s.Rows))
	for i := range s.Rows {
		key, err := json.Marshal(cells[i])
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(key)
		r := &s.Rows[i]
		run := exportedRun{
			id: hex.EncodeToString(sum[:16]), name: names[i],
			config: map[string]string{
				"task": r.Task, "method": r.Method, "sigma": r.Sigma.String(), "size": r.Size,
				"prior": r.Prior, "preset": r.Preset, "select": string(s.Rule),
			},
			params: assignments(r.Params), settings: assignments(r.Settings), metrics: rowMetrics(r),
		}
		if text := resultname.Photons(cells[i]); text != "" {
			run.config["photons"] = text
		}
		runs[i] = run
	}
	return runs, nil
}

// rowMetrics returns the defined figures of a row.
func rowMetrics(r *aggregate.Row) map[string]float64 {
	metrics := map[string]float64{
		"images": float64(r.Images), "items": float64(r.Items), "failed": float64(r.Failed), "dead": float64(r.Dead),
	}
	estimates := map[string]statistic.Estimate{
		"psnr": r.PSNR, "ssim": r.SSIM, "psnr_y": r.PSNRLuma, "haarpsi": r.HaarPSI, "residual": r.Residual,
		"baseline_psnr": r.Baseline, "gain": r.Gain, "seconds": r.Seconds,
	}
	maps.Copy(estimates, r.Metrics)
	for name, e := range estimates {
		if e.N > 0 {
			metrics[name] = e.Mean
		}
		if e.HalfWidth != nil {
			metrics[name+"_half_width"] = *e.HalfWidth
		}
	}
	return metrics
}

// assignments splits a list such as "steps=120;gamma0=8".
func assignments(list string) map[string]string {
	out := map[string]string{}
	for a := range strings.SplitSeq(list, ";") {
		if name, value, ok := strings.Cut(a, "="); ok {
			out[name] = value
		}
	}
	return out
}
