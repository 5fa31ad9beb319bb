package run

import (
	_ "embed" // auto.csv
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/cli/campaign"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// autoMethod is the value of --method that leaves the choice to [chooseMethod].
const autoMethod = "auto"

// severalMethod and severalRuns are the method and the settings of several runs where those of one run draw no noise.
const (
	severalMethod = "ddiff"
	severalRuns   = "steps=50 data_step=exact noise=full lambda=4 start_at=time t_start=500 start=rough cg_steps=10 mirror=alternate"
)

// measuredSide is that of the photographs with which the regions were measured.
const measuredSide = 64

// ownFile is the parameter of regions whose kernel or mask is a file.
const ownFile = "file"

// autoTable has one row for each measured region of problems.
//
//go:embed auto.csv
var autoTable string

// region is a row of autoTable.
type region struct {
	task                             string
	param                            string // the one in the range, blurWidth for the pixels of measuredSide; further words: with any value; ownFile: a kernel or mask from a file. All others: defaults
	low, high, sigmaLow, sigmaHigh   float64
	method, settings, runs, measured string // settings: in place of those of natural; runs: noise, if several runs have noise in each step; measured: file
	note                             string // where the picture as it was, or a classical method, was sometimes better
}

// regions reads autoTable. Its test reads every row.
func regions() ([]region, error) {
	records, err := csv.NewReader(strings.NewReader(autoTable)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read auto.csv: %w", err)
	}
	var out []region
	for _, r := range records[1:] {
		a := region{task: r[0], param: r[1], method: r[6], settings: r[7], runs: r[8], measured: r[9], note: r[10]}
		for i, v := range []*float64{&a.low, &a.high, &a.sigmaLow, &a.sigmaHigh} {
			if *v, err = strconv.ParseFloat(r[2+i], 64); err != nil {
				return nil, fmt.Errorf("read auto.csv: %w", err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// covers reports whether the parameters of an effective task lie in the region, for a picture with the given shorter side; file: it has a kernel or mask
// from a file.
func (a region) covers(t item.Task, side int, file bool, c manifest.Catalogue) bool {
	if file != (a.param == ownFile) {
		return false
	}
	free := strings.Fields(a.param)
	for _, p := range c.OperatorParameters(t) {
		value, given := t.Params[p.Name]
		if !given {
			value = p.Default
		}
		if p.Name == blurWidth && a.param == blurWidth {
			value *= float64(side) / measuredSide // of an equally wide blur in pixels
		}
		switch slices.Index(free, p.Name) {
		case -1:
			if value != p.Default {
				return false
			}
		case 0:
			if value < a.low || value > a.high {
				return false
			}
		}
	}
	return true
}

// distance returns how far the noise of an effective task lies outside the region, that of a mid-grey entry with photons.
func (a region) distance(t item.Task) float64 {
	n := operator.Noise{Sigma: float64(*t.Sigma)}
	if t.Photons != nil {
		n.Photons = *t.Photons
	}
	return max(a.sigmaLow-n.Level(), n.Level()-a.sigmaHigh, 0)
}

// chooseMethods chooses for each task of a restoration. perPicture: the parameters of each picture are estimated.
func chooseMethods(s *manifest.Spec, c manifest.Catalogue, perPicture bool) error {
	for i := range s.Tasks {
		if err := chooseMethod(s, &s.Tasks[i], c, perPicture); err != nil {
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

// chooseMethod sets method and settings of a task as the measurements in autoTable suggest, with the reason. Where none covers the task, the method is
// that of the first row of its table, or the campaign's. Where files tell the noise level or parameters, the settings are chosen for each of them.
func chooseMethod(s *manifest.Spec, t *item.Task, c manifest.Catalogue, perPicture bool) error {
	all, err := regions()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a region) bool { return a.task != t.Name })
	t.Methods = s.Methods[:1]
	if len(all) > 0 {
		t.Methods = []string{all[0].method} // of all rows of a task
	}
	whole := s.Effective(*t)
	if whole.Runs > 1 && (len(all) == 0 || all[0].runs == "noise") {
		t.Methods = []string{severalMethod}
	}
	method, file := t.Methods[0], c.Operators.Known(t.Name).Input == "mask" && s.Dataset.Mask != "" || s.Dataset.Kernel != ""
	blur := !file && slices.ContainsFunc(all, func(a region) bool { return a.param == blurWidth }) // whose pixels depend on the picture
	estimated := perPicture || *whole.Sigma == item.SigmaAuto || c.Operators.Known(t.Name).Stated != nil
	if blur || estimated {
		t.Choice = method + ", with settings for the pixels of each picture's blur"
		if estimated {
			t.Choice = method + ", with settings for the noise and the parameters of each picture"
		}
		t.Choose = func(row *item.Task, width, height int) {
			chooseSettings(row, all, method, min(width, height), file, c)
		}
		return nil
	}
	chooseSettings(&whole, all, method, 0, file, c)
	if s.Steps == 0 { // a person's number is the campaign's, so that what is wrong with it names its flag
		t.Steps = whole.Steps
	}
	t.Solver, t.Choice = whole.Solver, whole.Choice
	return nil
}

// chooseSettings sets the settings of an effective task, in place of none but those of a person, and the reason. Of the regions with its parameters the one
// with the nearest noise has the settings, also where it does not cover the noise. side is the shorter one of the picture in pixels, 0 where no region needs it.
func chooseSettings(t *item.Task, all []region, method string, side int, file bool, c manifest.Catalogue) {
	found, reason, note := region{}, "no measurement covers this task", ""
	if len(all) > 0 {
		found.runs, reason = all[0].runs, "no measurement covers these parameters and this noise"
	}
	distance := math.Inf(1)
	for _, a := range all {
		if d := a.distance(*t); d < distance && a.covers(*t, side, file, c) {
			found, distance = a, d
		}
	}
	if distance == 0 && t.Photons == nil {
		reason, note = "as measured in "+found.measured, found.note
	}
	if t.Steps > 0 || len(t.Solver) > 0 {
		reason = "no measurement covers settings of your own"
	}
	settings := found.settings
	if t.Runs > 1 && method == severalMethod && (found.runs == "noise" || len(all) == 0) {
		settings = severalRuns
		if len(all) > 0 {
			reason = "one run without it was better in most tasks, see docs/data/averages.csv"
		}
		reason = "with noise in each step, so that the runs differ; " + reason
	}
	t.Choice = method + ", " + reason
	if note != "" {
		t.Choice += "; " + note
	}
	chosen := parameter.Values{}
	for assignment := range strings.FieldsSeq(settings) {
		name, value, _ := strings.Cut(assignment, "=")
		switch v := campaign.SolverValue(value); {
		case name != "steps":
			chosen[name] = v
		case t.Steps == 0:
			t.Steps = int(v.Number)
		}
	}
	t.Solver = t.Solver.Or(chosen)
}
