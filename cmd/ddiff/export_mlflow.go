package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ddiff/coordinator/report"
)

// exportMLflow writes a summary as an MLflow file store: one experiment, one run per row. The form is that of MLflow's
// FileStore: meta.yaml, and one file per parameter, metric and tag.
func exportMLflow(to *tree, name string, s report.Summary) error {
	const experiment = "0"
	// The times are 0: a report does not depend on the clock.
	meta := map[string]any{
		"artifact_location": "mlruns/" + experiment, "creation_time": 0, "experiment_id": experiment, "last_update_time": 0,
		"lifecycle_stage": "active", "name": "ddiff " + name,
	}
	if err := putYAML(to, experiment+"/meta.yaml", meta); err != nil {
		return err
	}
	for i := range s.Rows {
		if err := exportMLflowRun(to, experiment, &s.Rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func exportMLflowRun(to *tree, experiment string, r *report.Row) error {
	key, err := json.Marshal(report.Cell{Problem: r.Problem, Approach: r.Approach})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(key)
	id := hex.EncodeToString(sum[:16])
	const finished = 3
	if err := putYAML(to, experiment+"/"+id+"/meta.yaml", map[string]any{
		"artifact_uri": "mlruns/" + experiment + "/" + id + "/artifacts", "end_time": 0, "entry_point_name": "", "experiment_id": experiment,
		"lifecycle_stage": "active", "run_id": id, "run_name": r.Task + " " + r.Method, "run_uuid": id, "source_name": "", "source_type": 4,
		"source_version": "", "start_time": 0, "status": finished, "tags": []string{}, "user_id": "ddiff",
	}); err != nil {
		return err
	}
	params := map[string]string{
		"task": r.Task, "method": r.Method, "sigma": strconv.FormatFloat(r.Sigma, 'g', -1, 64), "size": r.Size, "prior": r.Prior, "preset": r.Preset,
	}
	for prefix, list := range map[string]string{"params.": r.Params, "settings.": r.Settings} {
		for a := range strings.SplitSeq(list, ";") {
			if name, value, ok := strings.Cut(a, "="); ok {
				params[prefix+name] = value
			}
		}
	}
	files := map[string]string{"tags/mlflow.runName": r.Task + " " + r.Method}
	for name, value := range params {
		files["params/"+name] = value
	}
	for name, e := range map[string]report.Estimate{
		"psnr": r.PSNR, "ssim": r.SSIM, "residual": r.Residual, "baseline_psnr": r.Baseline, "gain": r.Gain, "seconds": r.Seconds,
	} {
		if e.N > 0 {
			files["metrics/"+name] = metricLine(e.Mean)
		}
		if e.HalfWidth != nil {
			files["metrics/"+name+"_half_width"] = metricLine(*e.HalfWidth)
		}
	}
	for name, n := range map[string]int{"images": r.Images, "items": r.Items, "failed": r.Failed, "dead": r.Dead} {
		files["metrics/"+name] = metricLine(float64(n))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := to.put(experiment+"/"+id+"/"+name, []byte(files[name])); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// metricLine is one measurement: time, value, step.
func metricLine(v float64) string { return "0 " + strconv.FormatFloat(v, 'g', -1, 64) + " 0\n" }

func putYAML(to *tree, key string, v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	return to.put(key, data)
}
