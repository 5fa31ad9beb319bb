package tune

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"ddiff/internal/cli"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// keyCampaign is the key of the campaign file with the chosen settings in the output of a tuning.
const keyCampaign = "tuned.yaml"

// tuneOutcome is the content of tuning.json and the output of ddiff tune --json.
type tuneOutcome struct {
	tune.Record
	// Key is the key of the record in the output.
	Key string `json:"record"`
	// Tests has the figures of the chosen settings on the test images.
	Tests []tuneTest `json:"tests"`
	// Stopped is the number of settings that were stopped early, NotRun the number of their images that were not run.
	Stopped int `json:"stopped"`
	NotRun  int `json:"not_run"`
	// TestEvaluations is the number of network evaluations on the test images.
	TestEvaluations int `json:"test_evaluations"`
	// Unreadable has the rows that could not be read.
	Unreadable []string `json:"unreadable,omitempty"`
	// Campaigns are the files that solve the test images with the chosen settings.
	Campaigns []string `json:"campaigns"`
	Out       string   `json:"out"`
}

// tuneTest has the figures of one problem and method. With folds, the settings of each image were chosen without it.
type tuneTest struct {
	sweep.Problem
	Method string `json:"method"`
	// Cells is the number of settings that were compared, Chosen has the chosen ones by fold.
	Cells  int      `json:"cells"`
	Chosen []string `json:"chosen"`
	// Evaluations is the number of network evaluations that the races spent.
	Evaluations int `json:"evaluations"`

	// Metrics are the means of the scores by the names of the metrics.
	Metrics map[string]statistic.Estimate `json:"metrics"`
	// Objective is the mean of the objective, higher is better.
	Objective statistic.Estimate `json:"objective,omitzero"`
	Images    []tunedImage       `json:"images"`
	// Failed has the names of the test images that were not restored in every run.
	Failed []string `json:"failed,omitempty"`

	variants []string // the chosen settings by fold, without those that all share
}

// tunedImage has the figures of one test image.
type tunedImage struct {
	tune.Image
	Fold     int          `json:"fold"`
	Settings string       `json:"settings"`
	Metrics  item.Metrics `json:"metrics"`
	merit    float64
}

// record describes the races.
func (t *tuning) record() tune.Record {
	r := tune.Record{Objective: string(t.objective), Select: t.rule, Split: *t.spec.Split}
	for k, f := range t.folds {
		fold := tune.RecordFold{Fold: f, Races: []tune.RecordRace{}}
		for _, c := range t.contests {
			race := c.record(k)
			r.Evaluations += race.Evaluations
			fold.Races = append(fold.Races, race)
		}
		r.Folds = append(r.Folds, fold)
	}
	return r
}

func (c *contest) record(k int) tune.RecordRace {
	race := c.races[k]
	out := tune.RecordRace{
		Task: c.problem.Task, Params: c.problem.Params, Sigma: float64(c.problem.Sigma), Photons: c.problem.Photons, Size: c.problem.Size,
		Method: c.method, Prior: c.prior, Rounds: race.Rounds(), Images: imageNames(race.Images()), Unusable: imageNames(race.Unusable()),
	}
	out.Chosen, _ = c.races[k].Winner()
	for _, s := range race.Standings() {
		cell := c.byKey[s.Key]
		out.Cells = append(out.Cells, tune.RecordedCell{Standing: s, Solver: cell.solver, Evaluations: cell.spent[k]})
		out.Evaluations += cell.spent[k]
	}
	return out
}

func imageNames(images []tune.Image) []string {
	out := []string{}
	for _, img := range images {
		out = append(out, img.Name)
	}
	return out
}

// tests computes the figures on the test images.
func (t *tuning) tests() (tests []tuneTest, evaluations int, err error) {
	for _, c := range t.contests {
		one := tuneTest{Problem: c.problem, Method: c.method, Cells: len(c.cells), Images: []tunedImage{}, Failed: nil}
		one.variants = c.variants()
		for k, f := range t.folds {
			settings, ok := c.races[k].Winner()
			one.Chosen = append(one.Chosen, settings)
			for _, cell := range c.cells {
				one.Evaluations += cell.spent[k]
			}
			for _, img := range c.among(f.Test) {
				if !ok {
					one.Failed = append(one.Failed, img.Name)
					continue
				}
				s := solution{c, settings, img.SHA256}
				figures, ok, err := t.figures(s)
				if err != nil {
					return nil, 0, err
				}
				image := tunedImage{Image: img, Fold: k + 1, Settings: settings, Metrics: figures, merit: t.objective.Merit(figures)}
				for _, r := range t.results[s] {
					evaluations += r.Evaluations()
				}
				if !ok || t.hasFailure(s) {
					one.Failed = append(one.Failed, img.Name)
					continue
				}
				one.Images = append(one.Images, image)
			}
		}
		one.estimate()
		tests = append(tests, one)
	}
	return tests, evaluations, nil
}

func (one *tuneTest) estimate() {
	over := func(get func(i tunedImage) float64) statistic.Estimate {
		var values []float64
		for _, i := range one.Images {
			if v := get(i); statistic.Defined(v) {
				values = append(values, v)
			}
		}
		return statistic.Mean(values)
	}
	one.Metrics = map[string]statistic.Estimate{}
	for _, name := range metric.Builtin().Names() {
		one.Metrics[name] = over(func(i tunedImage) float64 { return i.Metrics.Of(name) })
	}
	one.Objective = over(func(i tunedImage) float64 { return i.merit })
}

// variants describes how the chosen settings of each fold differ from the other settings of the contest.
func (c *contest) variants() []string {
	var cells []sweep.Cell
	for _, cell := range c.cells {
		cells = append(cells, sweep.Cell{Problem: c.problem, Approach: sweep.Approach{Method: c.method, Settings: cell.settings}})
	}
	texts := aggregate.Variants(cells)
	var out []string
	for k := range c.races {
		settings, ok := c.races[k].Winner()
		switch i := slices.IndexFunc(c.cells, func(t *tunedCell) bool { return t.settings == settings }); {
		case !ok:
			out = append(out, "none")
		case texts[i] == "":
			out = append(out, "-")
		default:
			out = append(out, texts[i])
		}
	}
	return out
}

// campaigns returns the campaign files that solve the test images with the chosen settings, by key: tuned.yaml, or one
// for each fold.
func (t *tuning) campaigns() (keys []string, files [][]byte, err error) {
	for k := range t.folds {
		spec := *t.spec
		split := *t.spec.Split
		split.Run = manifest.SideTest
		key := keyCampaign
		if split.Folds > 0 {
			split.Fold = k + 1
			key = fmt.Sprintf("tuned-%d.yaml", k+1)
		}
		spec.Split, spec.Tasks, spec.Solver, spec.Steps = &split, nil, nil, 0
		paths := []*string{&spec.Output}
		if spec.Prior != manifest.PriorBundled && spec.Prior != manifest.PriorBase {
			paths = append(paths, &spec.Prior) // in a campaign file it is relative to the file
		}
		for _, path := range paths {
			if manifest.IsAddress(*path) {
				continue
			}
			if *path, err = filepath.Abs(*path); err != nil {
				return nil, nil, err
			}
		}
		for _, c := range t.contests {
			settings, ok := c.races[k].Winner()
			if !ok {
				continue
			}
			task, err := c.task(settings)
			if err != nil {
				return nil, nil, err
			}
			spec.Tasks = append(spec.Tasks, task)
		}
		if len(spec.Tasks) == 0 {
			continue
		}
		data, err := spec.YAML("Settings that ddiff tune chose on other images; " + cli.KeyTuning + " has the comparison.\n" +
			"Remove split to restore all images of the dataset.")
		if err != nil {
			return nil, nil, err
		}
		keys, files = append(keys, key), append(files, data)
	}
	return keys, files, nil
}

// task is a task with the complete settings of one method.
func (c *contest) task(settings string) (item.Task, error) {
	cell := c.byKey[settings]
	sigma := c.problem.Sigma
	t := c.files
	t.Name, t.Params, t.Sigma, t.Steps, t.Runs, t.Methods = c.problem.Task, cell.params, &sigma, cell.steps, cell.runs, []string{c.method}
	if p := c.problem.Photons; p > 0 {
		t.Photons = &p
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(cell.solver, &raw); err != nil {
		return t, fmt.Errorf("read settings of %s: %w", c.describe(), err)
	}
	t.Solver = parameter.Values{}
	for name, data := range raw {
		if name == "method" || name == "steps" {
			continue
		}
		var v parameter.Value
		if err := json.Unmarshal(data, &v); err != nil {
			return t, fmt.Errorf("read setting %s of %s: %w", name, c.describe(), err)
		}
		t.Solver[name] = v
	}
	return t, nil
}
