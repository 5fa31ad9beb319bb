package manifest

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ddiff/restore/item"
)

// Probe holds the caller's findings about the files of a row.
type Probe struct {
	// The lower-case hex SHA-256 of each file of the row; empty for absent files.
	ImageSHA256, MeasurementSHA256, MaskSHA256, KernelSHA256 string
	// TaskFiles has the digests of the masks and kernels of the row's tasks, by path.
	TaskFiles map[string]string
	// Width and Height are the working size in pixels, after the campaign's fit.
	Width, Height int
	// Estimates has the noise levels of the measurement, one for each of [EstimatedTasks].
	Estimates []Estimate
	// Stated has, by task, the operator parameters that the measurement's file states.
	Stated map[string]Stated
}

// Stated completes the parameters of a task with those that the file of a measurement states.
type Stated interface {
	Complete(params map[string]float64) (map[string]float64, error)
}

// Resolver returns the complete settings of the solver and the complete parameters of the operator,
// which enter the identity. ownKernel is [item.Item.OwnKernel]. The task is effective (see [Spec.Effective]) and includes the row's
// overrides. It returns an error for a task that is impossible at this size or with these parameters.
type Resolver func(task TaskSpec, ownKernel bool, method string, width, height int) (solver json.RawMessage, params map[string]float64, err error)

// Expander expands the rows of one campaign into items.
type Expander struct {
	// Tile and Overlap are the result of [Spec.Tiles].
	Tile, Overlap int
	// Known decides by task whether a row may have photons, a measurement range, a mask and a kernel, or must have one. It has the campaign's operator files.
	Known Catalogue

	spec     *Spec
	campaign string
	prior    string
	resolve  Resolver
}

// NewExpander returns an expander for a valid spec, whose precision is not auto. Prior is the hex SHA-256 of the prior's file.
func NewExpander(spec *Spec, prior string, resolve Resolver) *Expander {
	return &Expander{spec: spec, campaign: spec.ID(), prior: prior, resolve: resolve}
}

// Expand returns the items of a row: tasks × methods × runs, with tasks outermost and runs innermost.
// First is the manifest index of the first item.
//
// Entries that cannot be expanded become failed results with a reason: all entries if the row has an
// error or the probe does not match it, or the entries of a task that does not resolve. Always
// len(items) + len(failed) == [ItemsPerRow], and every index from First on is used once.
func (e *Expander) Expand(row Row, probe Probe, first int) (items []item.Item, failed []item.Result) {
	rowErr := row.Err
	if rowErr == nil {
		rowErr = probe.check(row)
	}
	for _, p := range places(row, e.spec, first) {
		if rowErr != nil {
			failed = append(failed, e.failed(row, p, rowErr))
		} else if it, err := e.item(row, probe, p); err != nil {
			failed = append(failed, e.failed(row, p, fmt.Errorf("task %s, method %s: %w", p.task.Name, p.method, err)))
		} else {
			items = append(items, it)
		}
	}
	return items, failed
}

// item returns one item of a valid row.
func (e *Expander) item(row Row, probe Probe, p place) (item.Item, error) {
	fromTask := row.Overrides.Mask == "" && row.Overrides.Kernel == "" && p.task.file() != ""
	if fromTask {
		row.Overrides.Mask, row.Overrides.Kernel = p.task.Mask, p.task.Kernel
		probe.MaskSHA256, probe.KernelSHA256 = probe.TaskFiles[p.task.Mask], probe.TaskFiles[p.task.Kernel]
		if err := probe.check(row); err != nil {
			return item.Item{}, err
		}
	}
	declared, known := e.Known.task(p.task.Name)
	if known {
		if err := row.Overrides.checkInput(p.task.Name, declared, declared.Required); err != nil {
			return item.Item{}, err
		}
	}
	if err := e.checkMeasurementRange(row, p.task.Name); err != nil {
		return item.Item{}, err
	}
	estimated := *p.task.Sigma == SigmaAuto
	if p.task.Photons != nil && known && !declared.Photons() {
		return item.Item{}, errPhotons(p.task.Name)
	}
	if p.task.Photons != nil && estimated {
		return item.Item{}, errPhotonsAuto
	}
	if err := p.estimateSigma(row, probe.Estimates); err != nil {
		return item.Item{}, err
	}
	var err error
	if stated := probe.Stated[p.task.Name]; stated != nil {
		if p.task.Params, err = stated.Complete(p.task.Params); err != nil {
			return item.Item{}, err
		}
	}
	if p.task.Choose != nil {
		p.task.Choose(&p.task)
	}
	own := declared.Given != nil && row.Overrides.Kernel != ""
	solver, params, err := e.resolve(p.task, own, p.method, probe.Width, probe.Height)
	if err != nil {
		return item.Item{}, err
	}
	it := p.item(row, e.spec, e.campaign)
	it.SigmaEstimated = estimated
	it.Params = maps.Clone(params)
	for name, x := range it.Params {
		it.Params[name] = item.PositiveZero(x)
	}
	it.Width, it.Height = probe.Width, probe.Height
	it.Image = source(row.Image, probe.ImageSHA256)
	it.Measurement = source(row.Measurement, probe.MeasurementSHA256)
	it.MeasurementRange = e.spec.Dataset.MeasurementRange
	it.KeepObserved = e.spec.KeepObserved && declared.Input == "mask"
	it.Mask = source(row.Overrides.Mask, probe.MaskSHA256)
	it.Kernel = source(row.Overrides.Kernel, probe.KernelSHA256)
	if file := p.task.Operator; file != "" {
		own := e.Known.Files[file]
		if own == nil || len(own.SHA256) != 64 {
			return it, fmt.Errorf("operator %q has no SHA-256 digest", file)
		}
		it.Operator = source(file, own.SHA256)
	}
	it.FromTask, it.OwnKernel, it.Solver = fromTask, own, solver
	it.Prior, it.Precision = e.prior, e.spec.PrecisionOf(it.Task)
	if e.Tile > 0 && max(it.Width, it.Height) > e.Tile {
		it.Tile, it.Overlap = e.Tile, e.Overlap
	}
	err = it.Identify()
	return it, err
}

// check ensures that the identity includes everything that determines the result.
func (p Probe) check(row Row) error {
	if p.Width <= 0 || p.Height <= 0 {
		return fmt.Errorf("working size %dx%d is not positive", p.Width, p.Height)
	}
	for _, f := range []struct{ field, path, digest string }{
		{"image", row.Image, p.ImageSHA256},
		{"measurement", row.Measurement, p.MeasurementSHA256},
		{"mask", row.Overrides.Mask, p.MaskSHA256},
		{"kernel", row.Overrides.Kernel, p.KernelSHA256},
	} {
		if f.path != "" && len(f.digest) != 64 {
			return fmt.Errorf("%s %q has no SHA-256 digest", f.field, f.path)
		}
	}
	return nil
}

func source(path, digest string) *item.Source {
	if path == "" {
		return nil
	}
	return &item.Source{Path: path, SHA256: digest}
}

// place is one cell of a row's grid: task × method × run.
type place struct {
	index  int // in the manifest
	cell   int // in the grid of the row
	task   TaskSpec
	method string
	run    int
	// estimate is the index of the task in EstimatedTasks, if its noise level is auto.
	estimate int
}

// places returns the grid of a row in the order of the manifest.
func places(row Row, spec *Spec, first int) []place {
	out := make([]place, 0, ItemsPerRow(row, spec))
	estimates := 0
	for _, task := range rowTasks(row, spec) {
		for _, method := range spec.methodsOf(task) {
			for run := range task.Runs {
				t := task
				t.Params = maps.Clone(task.Params)
				out = append(out, place{first + len(out), len(out), t, method, run, estimates})
			}
		}
		if *task.Sigma == SigmaAuto {
			estimates++
		}
	}
	return out
}

// Cell is a restoration of each row that has no settings of its own: an effective task, a method and a run.
type Cell struct {
	Task   TaskSpec
	Method string
	Run    int
}

// Cells returns the cells of a campaign, with tasks outermost and runs innermost.
func (s *Spec) Cells() (out []Cell) {
	for _, t := range s.Tasks {
		t = s.Effective(t)
		for _, m := range s.methodsOf(t) {
			for run := range t.Runs {
				out = append(out, Cell{t, m, run})
			}
		}
	}
	return out
}

// item returns the item without the data of the row's files.
func (p place) item(row Row, spec *Spec, campaign string) item.Item {
	it := item.Item{
		Campaign: campaign, Index: p.index, Name: row.Name, Fit: spec.Dataset.Fit,
		Task: p.task.Name, Params: p.task.Params, Sigma: item.PositiveZero(float64(*p.task.Sigma)),
		Seed: spec.Seed, Run: p.run, Method: p.method, Preset: spec.Preset, Unclipped: spec.Unclipped, KeepStates: spec.KeepStates, Choice: p.task.Choice,
	}
	if p.task.Photons != nil {
		it.Photons = *p.task.Photons
	}
	if *p.task.Sigma == SigmaAuto {
		it.Sigma, it.SigmaEstimated = 0, true // not known
	}
	if row.Overrides.Seed != nil {
		it.Seed = *row.Overrides.Seed
	}
	return it
}

// RowTasks returns the names of the tasks of a row, with repetitions.
func RowTasks(row Row, spec *Spec) []string {
	var out []string
	for _, t := range rowTasks(row, spec) {
		out = append(out, t.Name)
	}
	return out
}

// rowTasks returns the effective tasks of a row, with the row's overrides. A row's task selects the
// campaign's tasks of that name, or adds a task with the campaign's settings, unless it was left out.
func rowTasks(row Row, spec *Spec) []TaskSpec {
	tasks := slices.Clone(spec.Tasks)
	if name := row.Overrides.Task; name != "" {
		tasks = slices.DeleteFunc(tasks, func(t TaskSpec) bool { return t.Name != name })
		if len(tasks) == 0 && !slices.Contains(spec.LeftOut, name) {
			tasks = []TaskSpec{{Name: name}}
		}
	}
	for i, t := range tasks {
		t = spec.Effective(t)
		if row.Overrides.Sigma != nil {
			t.Sigma = row.Overrides.Sigma
		}
		t.Photons = cmp.Or(row.Overrides.Photons, t.Photons)
		if len(row.Overrides.Params) > 0 {
			params := map[string]float64{}
			maps.Copy(params, t.Params)
			maps.Copy(params, row.Overrides.Params)
			t.Params = params
		}
		tasks[i] = t
	}
	return tasks
}

// failed returns the failed result of an entry that cannot be expanded. The caller adds Runtime and Finished.
//
// The item has a placeholder ID, from the row's name and paths and the campaign, because the digests
// of unreadable files are unknown. After a repair of the row its items get their real IDs and run.
func (e *Expander) failed(row Row, p place, reason error) item.Result {
	it := p.item(row, e.spec, e.campaign)
	it.Image = source(row.Image, "")
	it.Measurement = source(row.Measurement, "")
	it.Mask = source(row.Overrides.Mask, "")
	it.Kernel = source(row.Overrides.Kernel, "")
	it.Precision = e.spec.PrecisionOf(it.Task)
	it.ID = placeholderID(row, it, p.cell)
	return item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeFailed, Reason: reason.Error()}
}

// placeholderID returns a digest of the known properties of a cell. Encoding cannot fail: specs and
// lists have finite numbers only.
func placeholderID(row Row, it item.Item, cell int) string {
	key, err := item.Digest(struct {
		Schema      int    `json:"schema"`
		Placeholder bool   `json:"placeholder"`
		Campaign    string `json:"campaign"`
		Name        string `json:"name"`
		Image       string `json:"image"`
		Measurement string `json:"measurement"`
		Task        string `json:"task"`
		Cell        int    `json:"cell"`
	}{item.SchemaVersion, true, it.Campaign, row.Name, row.Image, row.Measurement, it.Task, cell})
	if err != nil {
		panic("manifest: encode a placeholder: " + err.Error())
	}
	return hex.EncodeToString(key[:])
}

// ItemsPerRow returns the number of manifest entries of a row, readable or not: the runs of its
// tasks × methods.
func ItemsPerRow(row Row, spec *Spec) int {
	n := 0
	for _, t := range rowTasks(row, spec) {
		n += len(spec.methodsOf(t)) * t.Runs
	}
	return n
}

// methodsOf returns the methods that solve a task, in the order of the campaign.
func (s *Spec) methodsOf(t TaskSpec) []string {
	if len(t.Methods) == 0 {
		return s.Methods
	}
	return slices.DeleteFunc(slices.Clone(s.Methods), func(m string) bool { return !slices.Contains(t.Methods, m) })
}
