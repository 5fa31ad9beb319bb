package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"ddiff/internal/redact"
)

// Vocabulary holds the names that the caller can run. This package knows none of them.
type Vocabulary struct {
	// Tasks maps each built-in task to its operator parameters.
	Tasks map[string][]Parameter
	// Operators maps the operator files that the caller has read to their parameters; parameters of other files are not checked.
	Operators map[string][]Parameter
	// Inputs maps each task to the file that a row may give to it: "mask", "kernel", or "". Nil: they are not checked.
	Inputs map[string]string
	// Unranged maps the tasks whose measurements have no values of black and white to the reason.
	Unranged map[string]string
	// Unestimated maps the tasks whose noise level cannot be estimated from a measurement to the reason.
	Unestimated map[string]string
	// Optional has the tasks whose kernel replaces their operator, see [Item.OwnKernel].
	Optional map[string]bool
	// Required has the tasks whose rows must give that file.
	Required map[string]bool
	// Photons maps each task to whether its measurement may have the noise of photons. Nil: it is not checked.
	Photons map[string]bool
	// Methods are the restoration methods.
	Methods []string
	// Parameters maps each method to its solver parameters.
	Parameters map[string][]Parameter
	// Unsuited maps methods that the prior rules out to the reason. Empty means that the prior is not known yet.
	Unsuited map[string]error
	// Settle returns an error for a task, with the campaign's settings, that a method of a preset cannot solve. Nil means that
	// the prior is not known yet.
	Settle func(preset string, task TaskSpec, method string) error
	// Presets are the named sets of solver parameters.
	Presets []string
	// MultipleOf divides the working size. Zero means that the prior is not known yet.
	MultipleOf int
	// Tile is the side of the tiles of campaigns with tile auto. Zero means that the prior is not known yet.
	Tile int
	// Untiled maps the methods that cannot restore images in tiles to the reason.
	Untiled map[string]error
	// MaxSteps is the largest number of solver steps. Zero means that the prior is not known yet.
	MaxSteps int
	// OwnSteps maps methods whose largest number of solver steps does not depend on the prior to that number.
	OwnSteps map[string]int
}

// Parameter is a parameter of a task or of a method.
type Parameter struct {
	Name string
	// Words are the accepted words. Numbers: numbers are accepted too, and Test checks them.
	Words   []string
	Numbers bool
	// Test returns an error that names the value and the range.
	Test func(Value) error
}

// Validate reports all missing, repeated and out-of-range values of the campaign, and names that the vocabulary lacks, each
// with the nearest valid name. The error joins one [FieldError] per problem.
func (s *Spec) Validate(v Vocabulary) error {
	problems := append(s.checkRanges(), s.checkRequired()...)
	problems = append(append(problems, s.checkNames(v)...), append(s.checkLeftOut(), s.checkFloat32(v)...)...)
	if len(problems) == 0 {
		return nil
	}
	return joinByLine(problems)
}

func (s *Spec) problem(field string, err error) *FieldError {
	top, _, _ := strings.Cut(field, "[")
	entry, _, _ := strings.Cut(field, ".")
	if by := cmp.Or(s.overrides[field], s.overrides[entry], s.overrides[top]); by != "" {
		return &FieldError{Field: by, Err: err}
	}
	return &FieldError{File: s.file, Line: s.lines[field], Field: field, Err: err}
}

// maxDatasetPath is the largest length of dataset.path in bytes: the record of a campaign has less than 768 KiB.
const maxDatasetPath = 700_000

func (s *Spec) checkRequired() []*FieldError {
	var out []*FieldError
	addresses := []struct{ field, address string }{{"dataset.path", s.Dataset.Path}, {"output", s.Output}, {"prior", s.Prior}}
	for i, t := range s.Tasks {
		for _, f := range []struct{ name, path string }{{"operator", t.Operator}, {"mask", t.Mask}, {"kernel", t.Kernel}} {
			addresses = append(addresses, struct{ field, address string }{taskField(i) + "." + f.name, f.path})
		}
	}
	for _, f := range addresses {
		if redact.Credentials(f.address) {
			out = append(out, s.problem(f.field, errors.New("the address contains credentials; set them in the environment")))
		}
	}
	if n := len(s.Dataset.Path); n > maxDatasetPath {
		out = append(out, s.problem("dataset.path", fmt.Errorf("has %d bytes, at most %d are allowed; write the images into a .txt or .csv list", n, maxDatasetPath)))
	}
	if s.Dataset.Path == "" {
		out = append(out, s.problem("dataset.path", errors.New("is missing; give a directory, a glob, or a .csv or .jsonl list")))
	}
	if len(s.Tasks) == 0 {
		out = append(out, s.problem("tasks", errors.New("is missing or empty; name at least one task")))
	}
	if len(s.Methods) == 0 {
		out = append(out, s.problem("methods", errors.New("is empty; name at least one method or remove the field")))
	}
	return out
}

func (s *Spec) checkNames(v Vocabulary) []*FieldError {
	var out []*FieldError
	name := func(field, kind, name string, valid []string) bool {
		ok := slices.Contains(valid, name)
		if !ok {
			out = append(out, s.problem(field, unknown(kind, name, valid)))
		}
		return ok
	}
	tasks := slices.Sorted(maps.Keys(v.Tasks))
	seenTasks := map[string]bool{}
	for i, t := range s.Tasks {
		field := fmt.Sprintf("tasks[%d]", i)
		if t.Name == "" {
			out = append(out, s.problem(field, errors.New("has no name; name a task")))
			continue
		}
		parameters, known := v.Tasks[t.Name], true
		if t.Operator != "" {
			if problem := s.checkOperator(field, t, v); problem != nil {
				out = append(out, problem)
				continue
			}
			parameters, known = v.Operators[t.Operator]
		} else if !name(field, "task", t.Name, tasks) {
			continue
		}
		if known {
			out = append(out, s.checkParams(field+".params.", t, parameters)...)
		}
		out = append(out, s.checkSolver(field+".solver", t.Solver, s.methodsOf(t), v)...)
		if problem := s.checkAuto(i, v); problem != nil {
			out = append(out, problem)
		}
		for k, m := range t.Methods {
			name(fmt.Sprintf("%s.methods[%d]", field, k), "method of the campaign", m, s.Methods)
		}
		out = append(out, s.checkSteps(field+".steps", t.Steps, s.methodsOf(t), v)...)
		// Tasks that differ only in their number of runs have items in common. A task with a NaN in it cannot be compared;
		// checkRanges has reported it.
		plain := s.Effective(t)
		plain.Methods, plain.Runs = nil, 0
		if key, err := digest(plain); err == nil {
			var solutions []string
			for _, m := range s.methodsOf(t) {
				solutions = append(solutions, string(key[:])+m)
			}
			if slices.ContainsFunc(solutions, func(solution string) bool { return seenTasks[solution] }) {
				out = append(out, s.problem(field, fmt.Errorf("task %q is repeated with the same settings; remove one", t.Name)))
			}
			for _, solution := range solutions {
				seenTasks[solution] = true
			}
		}
	}
	seenMethods := map[string]bool{}
	for i, m := range s.Methods {
		field := fmt.Sprintf("methods[%d]", i)
		if name(field, "method", m, v.Methods) && seenMethods[m] {
			out = append(out, s.problem(field, fmt.Errorf("method %q is repeated; remove one", m)))
		}
		if err := v.Unsuited[m]; err != nil {
			out = append(out, s.problem(field, err))
		}
		seenMethods[m] = true
	}
	out = append(out, s.checkInputs(v)...)
	out = append(out, s.checkPhotons(v)...)
	out = append(out, s.checkSolver("solver", s.Solver, s.Methods, v)...)
	out = append(out, s.checkSteps("steps", s.Steps, s.Methods, v)...)
	name("preset", "preset", s.Preset, v.Presets)
	if v.Settle != nil && len(out) == 0 {
		for i, t := range s.Tasks {
			for _, m := range s.methodsOf(t) {
				if err := v.Settle(s.Preset, s.Effective(t), m); err != nil {
					out = append(out, s.problem(fmt.Sprintf("tasks[%d]", i), err))
				}
			}
		}
	}
	if v.Tile > 0 && len(s.checkRanges()) == 0 {
		tile, _, err := s.tiles(v.Tile, max(v.MultipleOf, 1))
		if err != nil {
			out = append(out, err)
		}
		for i, m := range s.Methods {
			if err := v.Untiled[m]; err != nil && s.mayDivide(tile) {
				out = append(out, s.problem(fmt.Sprintf("methods[%d]", i), err))
			}
		}
	}
	if m := v.MultipleOf; m > 0 && s.Dataset.Fit != FitPad && s.Dataset.Size%m != 0 {
		near := max(1, (s.Dataset.Size+m/2)/m) * m
		out = append(out, s.problem("dataset.size", fmt.Errorf("%d is not a multiple of %d, as the prior requires; use %d", s.Dataset.Size, m, near)))
	}
	return out
}

// checkParams checks the operator parameters of a task. The row's size can still rule a value out.
func (s *Spec) checkParams(path string, t TaskSpec, parameters []Parameter) []*FieldError {
	var known []string
	for _, p := range parameters {
		known = append(known, p.Name)
	}
	var out []*FieldError
	for _, name := range slices.Sorted(maps.Keys(t.Params)) {
		i := slices.Index(known, name)
		if i < 0 {
			err := unknown("parameter of "+t.Name, name, known)
			if len(known) == 0 {
				err = fmt.Errorf("unknown parameter %q: %s has no parameters", clip(name), t.Name)
			}
			out = append(out, s.problem(path+name, err))
		} else if err := parameters[i].Test(Value{Number: t.Params[name]}); err != nil {
			out = append(out, s.problem(path+name, err))
		}
	}
	return out
}

// checkSteps checks a number of steps for all methods that it applies to.
func (s *Spec) checkSteps(field string, steps int, methods []string, v Vocabulary) []*FieldError {
	for _, m := range methods {
		if own, ok := v.OwnSteps[m]; ok && steps > own {
			return []*FieldError{s.problem(field, fmt.Errorf("%d is out of range, want 2 to %d for method %s", steps, own, m))}
		} else if !ok && v.MaxSteps > 0 && steps > v.MaxSteps {
			return []*FieldError{s.problem(field, fmt.Errorf("%d is out of range, want 2 to %d, the length of the prior's schedule", steps, v.MaxSteps))}
		}
	}
	return nil
}

// checkSolver checks solver parameters against those of the methods: one method at least has the parameter, and each
// method that has it accepts the value.
func (s *Spec) checkSolver(path string, values Values, methods []string, v Vocabulary) []*FieldError {
	if len(methods) == 0 {
		return nil // the missing or unknown methods are reported
	}
	var known []string
	parameters := map[string][]Parameter{} // by name, of the methods that have it
	for _, m := range methods {
		if !slices.Contains(v.Methods, m) {
			return nil // the unknown method is reported
		}
		for _, p := range v.Parameters[m] {
			if parameters[p.Name] == nil {
				known = append(known, p.Name)
			}
			parameters[p.Name] = append(parameters[p.Name], p)
		}
	}
	var out []*FieldError
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, value := path+"."+name, values[name]
		if parameters[name] == nil {
			out = append(out, s.problem(field, unknown("parameter of "+strings.Join(methods, ", "), name, known)))
		}
		for _, p := range parameters[name] {
			err := p.Test(value)
			if err != nil && value.Word != "" && !p.Numbers {
				err = unknown("value", value.Word, p.Words)
			}
			if err != nil {
				out = append(out, s.problem(field, err))
				break
			}
		}
	}
	return out
}

// checkRanges checks the values whose range does not depend on the vocabulary.
func (s *Spec) checkRanges() []*FieldError {
	c := rangeChecker{spec: s}
	c.name("name", s.Name)
	c.integer("dataset.size", s.Dataset.Size, 8, 4096)
	c.oneOf("dataset.fit", string(s.Dataset.Fit), string(FitCenterCrop), string(FitResize), string(FitPad))
	c.integer("dataset.limit", s.Dataset.Limit, 0, math.MaxInt32)
	c.columns("dataset.columns", s.Dataset.Columns)
	if r := s.Dataset.MeasurementRange; r != nil {
		if err := r.check(); err != nil {
			c.add("dataset.measurement_range", err)
		}
	}
	for i, t := range s.Tasks {
		path := fmt.Sprintf("tasks[%d].", i)
		for _, p := range slices.Sorted(maps.Keys(t.Params)) {
			c.finite(path+"params."+p, t.Params[p])
		}
		if t.Sigma != nil {
			c.sigma(path+"sigma", *t.Sigma)
		}
		c.photons(path+"photons", t.Photons)
		c.steps(path+"steps", t.Steps)
		c.integer(path+"runs", cmp.Or(t.Runs, 1), 1, 1000)
	}
	c.steps("steps", s.Steps)
	c.sigma("sigma", s.Sigma)
	c.photons("photons", s.Photons)
	c.integer("runs", s.Runs, 1, 1000)
	if s.Select != selectMinResidual {
		c.oneOf("select", string(s.Select), selectionNames()...)
	}
	c.integer("batch", s.Batch, 0, 1024)
	if s.Precision != "" {
		c.oneOf("precision", string(s.Precision), precisionNames()...)
	}
	c.tile(s)
	c.notEmpty("prior", s.Prior)
	c.notEmpty("output", s.Output)
	c.integer("attempts", s.Attempts, 1, 100)
	if s.Split != nil {
		if field, err := s.Split.Check(); err != nil {
			c.add("split."+field, err)
		}
	}
	return c.problems
}

// rangeChecker collects the values of a spec that are out of range.
type rangeChecker struct {
	spec     *Spec
	problems []*FieldError
}

func (c *rangeChecker) add(field string, err error) {
	c.problems = append(c.problems, c.spec.problem(field, err))
}

func (c *rangeChecker) integer(field string, x, lo, hi int) {
	if x < lo || x > hi {
		c.add(field, fmt.Errorf("%d is out of range, want %d to %d", x, lo, hi))
	}
}

func (c *rangeChecker) steps(field string, x int) {
	if x != 0 && x < 2 {
		c.add(field, fmt.Errorf("%d is out of range, want at least 2, or 0 for the default", x))
	}
}

func (c *rangeChecker) sigma(field string, x Sigma) {
	if err := x.check(); err != nil {
		c.add(field, err)
	}
}

func (c *rangeChecker) finite(field string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		c.add(field, fmt.Errorf("%v is not a finite number", x))
	}
}

func (c *rangeChecker) oneOf(field, x string, valid ...string) {
	if !slices.Contains(valid, x) {
		c.add(field, unknown("value", x, valid))
	}
}

func (c *rangeChecker) notEmpty(field, x string) {
	if x == "" {
		c.add(field, errors.New("is empty; give a value or remove the field"))
	}
}

func (c *rangeChecker) name(field, x string) {
	if err := checkName(x); err != nil {
		c.add(field, err)
	}
}

func (c *rangeChecker) columns(field string, columns map[string]string) {
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		if err := checkColumn(column); err != nil {
			c.add(field+"."+column, err)
		} else if strings.ContainsFunc(columns[column], unicode.IsControl) {
			c.add(field+"."+column, errors.New("has control characters; remove them"))
		}
	}
	if columnName(columns, "image") == "" && columnName(columns, "measurement") == "" {
		c.add(field, errors.New("reads neither image nor measurement; leave one of them in"))
	}
}
