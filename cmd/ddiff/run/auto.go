package run

import (
	_ "embed" // auto.csv
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
)

// autoMethod is the value of --method that leaves the choice to [chooseMethod].
const autoMethod = "auto"

// severalRuns are the settings of several runs where those of one run draw no noise.
const severalRuns = "steps=50 lambda=4 sigma_rule=full t0=0 t_start=500 start_noise=0 start=rough"

// autoTable has one row for each measured region of problems; docs/restore.md describes the columns.
//
//go:embed auto.csv
var autoTable string

// region is a row of autoTable.
type region struct {
	task                             string
	param                            string // empty: any parameters
	low, high, sigmaLow, sigmaHigh   float64
	method, settings, runs, measured string
	caution                          string
}

// regions reads autoTable. Its test reads every row.
func regions() ([]region, error) {
	records, err := csv.NewReader(strings.NewReader(autoTable)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read auto.csv: %w", err)
	}
	var out []region
	for _, r := range records[1:] {
		a := region{task: r[0], param: r[1], method: r[6], settings: r[7], runs: r[8], measured: r[9], caution: r[10]}
		for i, v := range []*float64{&a.low, &a.high, &a.sigmaLow, &a.sigmaHigh} {
			if *v, err = strconv.ParseFloat(r[2+i], 64); err != nil {
				return nil, fmt.Errorf("read auto.csv: %w", err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// covers reports whether a problem lies in the region. A noise level that each picture is estimated to have does.
func (a region) covers(t manifest.TaskSpec, c shard.Catalogue) bool {
	value, given := t.Params[a.param]
	for _, p := range c.Vocabulary().OperatorParameters(t) {
		if p.Name == a.param && !given {
			value = p.Default
		}
	}
	sigma := *t.Sigma
	return a.task == t.Name && (a.param == "" || value >= a.low && value <= a.high) &&
		(sigma == manifest.SigmaAuto || float64(sigma) >= a.sigmaLow && float64(sigma) <= a.sigmaHigh)
}

// chooseMethods chooses for each task of a restoration.
func chooseMethods(s *manifest.Spec, c shard.Catalogue) error {
	for i := range s.Tasks {
		if err := chooseMethod(s, &s.Tasks[i], c); err != nil {
			return err
		}
	}
	var methods []string
	for _, t := range s.Tasks {
		methods = append(methods, t.Methods...)
	}
	if slices.Sort(methods); len(methods) > 0 {
		s.Methods = slices.Compact(methods)
	}
	return nil
}

// choices returns the reasons for the chosen methods, each once.
func choices(s *manifest.Spec) []string {
	var out []string
	for _, t := range s.Tasks {
		if t.Choice != "" && !slices.Contains(out, t.Choice) {
			out = append(out, t.Choice)
		}
	}
	return out
}

// chooseMethod sets method and settings of a task as the measurements in autoTable suggest, with the reason. Where none covers the task, the method is
// that of the nearest row of the table, or the campaign's.
func chooseMethod(s *manifest.Spec, t *manifest.TaskSpec, c shard.Catalogue) error {
	all, err := regions()
	if err != nil {
		return err
	}
	whole := s.Effective(*t)
	var found *region
	covered := false
	for i := range all {
		if covered = all[i].covers(whole, c); covered || found == nil && all[i].task == t.Name {
			found = &all[i]
		}
		if covered {
			break
		}
	}
	if found == nil {
		t.Methods, t.Choice = s.Methods[:1], s.Methods[0]+"; no measurement covers this task"
		return nil
	}
	t.Methods, t.Choice = []string{found.method}, fmt.Sprintf("%s, as measured in %s", found.method, found.measured)
	if !covered {
		t.Choice = fmt.Sprintf("%s; no measurement covers these parameters and this sigma", found.method)
	}
	if found.caution != "" {
		t.Choice += "; " + found.caution
	}
	settings := found.settings
	if whole.Runs > 1 && found.runs == "noise" {
		settings = severalRuns
		t.Choice += "; with noise in each step, so that the runs differ"
	}
	chosen := manifest.Values{}
	for assignment := range strings.FieldsSeq(settings) {
		name, value, _ := strings.Cut(assignment, "=")
		switch number, err := strconv.ParseFloat(value, 64); {
		case err != nil:
			chosen[name] = manifest.Value{Word: value}
		case name != "steps":
			chosen[name] = manifest.Value{Number: number}
		case whole.Steps == 0:
			t.Steps = int(number)
		}
	}
	t.Solver = t.Solver.Or(chosen)
	return nil
}
