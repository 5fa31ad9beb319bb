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
type Resolver func(task item.Task, ownKernel bool, width, height int) (solver json.RawMessage, params map[string]float64, err error)

// Expander expands the rows of one campaign into items.
type Expander struct {
	// Campaign is the id of the campaign. Default: that of a campaign without an owner.
	Campaign string
	// Tile and Overlap are the result of [Spec.Tiles].
	Tile, Overlap int
	// Known decides by task whether a row may have photons, a measurement range, a mask and a kernel, or must have one. It has the campaign's operator files.
	Known Catalogue

	spec    *Spec
	prior   string
	resolve Resolver
}

// NewExpander returns an expander for a valid spec, whose precision is not auto. Prior is the hex SHA-256 of the prior's file.
func NewExpander(spec *Spec, prior string, resolve Resolver) *Expander {
	return &Expander{spec: spec, Campaign: spec.ID(""), prior: prior, resolve: resolve}
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
	estimates := probe.Estimates
	for _, task := range rowTasks(row, e.spec) {
		auto := *task.Sigma == item.SigmaAuto
		for _, t := range e.spec.cells(task) {
			cell := len(items) + len(failed)
			if rowErr != nil {
				failed = append(failed, e.failed(row, t, first, cell, rowErr))
			} else if it, err := e.item(row, probe, t, first+cell, estimates); err != nil {
				err = &FieldError{File: row.List, Line: row.Line, Err: fmt.Errorf("task %s, method %s: %w", t.Name, t.Method, err)}
				failed = append(failed, e.failed(row, t, first, cell, err))
			} else {
				items = append(items, it)
			}
		}
		if auto && len(estimates) > 0 {
			estimates = estimates[1:]
		}
	}
	return items, failed
}

// item returns the item of a cell of a valid row; the first of the estimates is that of its measurement.
func (e *Expander) item(row Row, probe Probe, t item.Task, index int, estimates []Estimate) (item.Item, error) {
	fromTask := row.Overrides.Mask == "" && row.Overrides.Kernel == "" && fileOf(t) != ""
	if fromTask {
		row.Overrides.Mask, row.Overrides.Kernel = t.Mask, t.Kernel
		probe.MaskSHA256, probe.KernelSHA256 = probe.TaskFiles[t.Mask], probe.TaskFiles[t.Kernel]
		if err := probe.check(row); err != nil {
			return item.Item{}, err
		}
	}
	declared, known := e.Known.task(t.Name)
	if known {
		if err := row.Overrides.checkInput(t.Name, declared, declared.Required); err != nil {
			return item.Item{}, err
		}
	}
	if err := e.checkMeasurementRange(row, t.Name); err != nil {
		return item.Item{}, err
	}
	t.Estimated = *t.Sigma == item.SigmaAuto
	if err := t.CheckPhotons(!known || declared.Photons()); err != nil {
		return item.Item{}, err
	}
	if t.Estimated {
		sigma, err := estimateOf(row, estimates)
		if err != nil {
			return item.Item{}, err
		}
		t.Sigma = &sigma
	}
	var err error
	if stated := probe.Stated[t.Name]; stated != nil {
		if t.Params, err = stated.Complete(t.Params); err != nil {
			return item.Item{}, err
		}
	}
	if t.Choose != nil {
		t.Choose(&t, probe.Width, probe.Height)
	}
	own := declared.Given != nil && row.Overrides.Kernel != ""
	solver, params, err := e.resolve(t, own, probe.Width, probe.Height)
	if err != nil {
		return item.Item{}, err
	}
	t.Params, t.Tile, t.Overlap = params, e.Tile, e.Overlap
	it := e.entry(row, t, index, probe.Width, probe.Height)
	it.Image = source(row.Image, probe.ImageSHA256)
	it.Measurement = source(row.Measurement, probe.MeasurementSHA256)
	it.MeasurementRange, it.DrawForm = e.spec.Dataset.MeasurementRange, e.spec.Dataset.DrawForm()
	it.KeepObserved = t.KeepObserved && declared.Input == "mask"
	it.Mask = source(row.Overrides.Mask, probe.MaskSHA256)
	it.Kernel = source(row.Overrides.Kernel, probe.KernelSHA256)
	if file := t.Operator; file != "" {
		own := e.Known.Files[file]
		if own == nil || len(own.SHA256) != 64 {
			return it, fmt.Errorf("operator %q has no SHA-256 digest", file)
		}
		it.Operator = source(file, own.SHA256)
	}
	it.FromTask, it.OwnKernel, it.Solver = fromTask, own, solver
	it.Prior = e.prior
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

// cells returns the cells of an effective task, with runs innermost.
func (s *Spec) cells(t item.Task) (out []item.Task) {
	for _, t.Method = range s.methodsOf(t) {
		for t.Run = range t.Runs {
			out = append(out, t)
		}
	}
	return out
}

// Cells returns the restorations of each row that has no settings of its own, with tasks outermost and runs innermost.
func (s *Spec) Cells() (out []item.Task) {
	for _, t := range s.Tasks {
		out = append(out, s.cells(s.Effective(t))...)
	}
	return out
}

// entry returns the item of a cell without the data of the row's files.
func (e *Expander) entry(row Row, t item.Task, index, width, height int) item.Item {
	it := t.Item(width, height)
	it.Campaign, it.Index, it.Name, it.Fit, it.Unclipped = e.Campaign, index, row.Name, e.spec.Dataset.Fit, e.spec.Unclipped
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
func rowTasks(row Row, spec *Spec) []item.Task {
	tasks := slices.Clone(spec.Tasks)
	if name := row.Overrides.Task; name != "" {
		tasks = slices.DeleteFunc(tasks, func(t item.Task) bool { return t.Name != name })
		if len(tasks) == 0 && !slices.Contains(spec.LeftOut, name) {
			tasks = []item.Task{{Name: name}}
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
func (e *Expander) failed(row Row, t item.Task, first, cell int, reason error) item.Result {
	it := e.entry(row, t, first+cell, 0, 0)
	it.Image = source(row.Image, "")
	it.Measurement = source(row.Measurement, "")
	it.Mask = source(row.Overrides.Mask, "")
	it.Kernel = source(row.Overrides.Kernel, "")
	it.ID = placeholderID(row, it, cell)
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
func (s *Spec) methodsOf(t item.Task) []string {
	if len(t.Methods) == 0 {
		return s.Methods
	}
	return slices.DeleteFunc(slices.Clone(s.Methods), func(m string) bool { return !slices.Contains(t.Methods, m) })
}
