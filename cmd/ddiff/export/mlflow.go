package export

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// exportMLflow writes runs as an MLflow file store of one experiment. The form is that of MLflow's FileStore: meta.yaml,
// and one file per parameter, metric and tag.
func exportMLflow(to *tree, name string, runs []exportedRun) error {
	const experiment = "0"
	// The times are 0: a report does not depend on the clock.
	meta := map[string]any{
		"artifact_location": "mlruns/" + experiment, "creation_time": 0, "experiment_id": experiment, "last_update_time": 0,
		"lifecycle_stage": "active", "name": "ddiff " + name,
	}
	if err := putYAML(to, experiment+"/meta.yaml", meta); err != nil {
		return err
	}
	for _, r := range runs {
		if err := exportMLflowRun(to, experiment, r); err != nil {
			return err
		}
	}
	return nil
}

func exportMLflowRun(to *tree, experiment string, r exportedRun) error {
	const finished = 3
	if err := putYAML(to, experiment+"/"+r.id+"/meta.yaml", map[string]any{
		"artifact_uri": "mlruns/" + experiment + "/" + r.id + "/artifacts", "end_time": 0, "entry_point_name": "", "experiment_id": experiment,
		"lifecycle_stage": "active", "run_id": r.id, "run_name": r.name, "run_uuid": r.id, "source_name": "", "source_type": 4,
		"source_version": "", "start_time": 0, "status": finished, "tags": []string{}, "user_id": "ddiff",
	}); err != nil {
		return err
	}
	files := map[string]string{"tags/mlflow.runName": r.name}
	for prefix, values := range map[string]map[string]string{"": r.config, "params.": r.params, "settings.": r.settings} {
		for name, value := range values {
			files["params/"+prefix+name] = value
		}
	}
	for name, v := range r.metrics {
		files["metrics/"+name] = metricLine(v)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := to.put(experiment+"/"+r.id+"/"+name, []byte(files[name])); err != nil {
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
