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
)

// Vocabulary is what the caller can run. This package knows none of the names itself.
type Vocabulary struct {
	// Tasks maps each task to the names of its parameters.
	Tasks map[string][]string
	// Methods are the solvers.
	Methods []string
	// Presets are the named sets of solver parameters.
	Presets []string
}

// Validate reports everything that is wrong with the campaign: what is missing, out of
// range or repeated, and names that the vocabulary does not have, each with the nearest
// name that it does have. The error joins one [FieldError] per problem.
func (s *Spec) Validate(v Vocabulary) error {
	problems := append(s.checkRanges(), s.checkRequired()...)
	problems = append(problems, s.checkNames(v)...)
	if len(problems) == 0 {
		return nil
	}
	return joinByLine(problems)
}

func (s *Spec) problem(field string, err error) *FieldError {
	top, _, _ := strings.Cut(field, "[")
	if by := cmp.Or(s.overrides[field], s.overrides[top]); by != "" {
		return &FieldError{Field: by, Err: err}
	}
	return &FieldError{File: s.file, Line: s.lines[field], Field: field, Err: err}
}

func (s *Spec) checkRequired() []*FieldError {
	var out []*FieldError
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
	seenTasks := map[[32]byte]bool{}
	for i, t := range s.Tasks {
		field := fmt.Sprintf("tasks[%d]", i)
		if t.Name == "" {
			out = append(out, s.problem(field, errors.New("has no name; name a task")))
			continue
		}
		if !name(field, "task", t.Name, tasks) {
			continue
		}
		for _, p := range slices.Sorted(maps.Keys(t.Params)) {
			name(field+".params."+p, "parameter of "+t.Name, p, v.Tasks[t.Name])
		}
		// A task with a NaN in it cannot be compared; checkRanges has reported it.
		if key, err := digest(s.Effective(t)); err == nil {
			if seenTasks[key] {
				out = append(out, s.problem(field, fmt.Errorf("task %q is repeated with the same settings; remove one", t.Name)))
			}
			seenTasks[key] = true
		}
	}
	seenMethods := map[string]bool{}
	for i, m := range s.Methods {
		field := fmt.Sprintf("methods[%d]", i)
		if name(field, "method", m, v.Methods) && seenMethods[m] {
			out = append(out, s.problem(field, fmt.Errorf("method %q is repeated; remove one", m)))
		}
		seenMethods[m] = true
	}
	name("preset", "preset", s.Preset, v.Presets)
	return out
}

// checkRanges checks every value that is wrong in any vocabulary.
func (s *Spec) checkRanges() []*FieldError {
	c := rangeChecker{spec: s}
	c.name("name", s.Name)
	c.integer("dataset.size", s.Dataset.Size, 8, 4096)
	c.oneOf("dataset.fit", string(s.Dataset.Fit), string(FitCenterCrop), string(FitResize), string(FitPad))
	c.integer("dataset.limit", s.Dataset.Limit, 0, math.MaxInt32)
	c.columns("dataset.columns", s.Dataset.Columns)
	for i, t := range s.Tasks {
		path := fmt.Sprintf("tasks[%d].", i)
		for _, p := range slices.Sorted(maps.Keys(t.Params)) {
			c.finite(path+"params."+p, t.Params[p])
		}
		if t.Sigma != nil {
			c.sigma(path+"sigma", *t.Sigma)
		}
		c.steps(path+"steps", t.Steps)
		c.solver(path+"solver.", t.Solver)
	}
	c.steps("steps", s.Steps)
	c.sigma("sigma", s.Sigma)
	c.integer("runs", s.Runs, 1, 1000)
	c.oneOf("select", string(s.Select),
		string(SelectFirst), string(SelectMean), string(SelectMinResidual), string(SelectBestPSNR))
	c.integer("batch", s.Batch, 0, 1024)
	c.solver("solver.", s.Solver)
	c.notEmpty("prior", s.Prior)
	c.notEmpty("output", s.Output)
	c.integer("attempts", s.Attempts, 1, 100)
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
	if x != 0 && (x < 2 || x > 1000) {
		c.add(field, fmt.Errorf("%d is out of range, want 2 to 1000, or 0 for the default", x))
	}
}

func (c *rangeChecker) sigma(field string, x float64) {
	if err := checkSigma(x); err != nil {
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
	if len(columns) > 0 && columnName(columns, "image") == "" && columnName(columns, "measurement") == "" {
		c.add(field, errors.New("reads neither image nor measurement; leave one of them in"))
	}
}

func (c *rangeChecker) solver(path string, o SolverOverrides) {
	const largest = 1e6 // far above any published value; larger ones are slips
	if g := o.Gamma0; g != nil && !(*g > 0 && *g <= largest) {
		c.add(path+"gamma0", fmt.Errorf("%v is out of range, want above 0, at most 1e6", *g))
	}
	c.scale(path+"a", o.A, largest)
	c.scale(path+"b", o.B, largest)
	c.timestep(path+"t_gamma", o.TGamma)
	c.timestep(path+"t0", o.T0)
	if o.SigmaRule != "" {
		c.oneOf(path+"sigma_rule", o.SigmaRule, "ddpm", "full")
	}
	if o.Gradient != "" {
		c.oneOf(path+"gradient", o.Gradient, "norm", "squared")
	}
}

func (c *rangeChecker) scale(field string, x *float64, largest float64) {
	if x != nil && !(*x >= 0 && *x <= largest) {
		c.add(field, fmt.Errorf("%v is out of range, want 0 to 1e6", *x))
	}
}

func (c *rangeChecker) timestep(field string, x *int) {
	if x != nil {
		c.integer(field, *x, 0, 1000)
	}
}

// checkSigma accepts the noise levels of a spec and of a list's column.
func checkSigma(x float64) error {
	if !(x >= 0 && x <= 1) {
		return fmt.Errorf("%v is out of range, want 0 to 1 (in units of y)", x)
	}
	return nil
}

// checkName accepts the names of campaigns and rows.
func checkName(name string) error {
	const longest = 100
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("is empty; give a name or leave it out")
	case len([]rune(name)) > longest:
		return fmt.Errorf("is longer than %d characters", longest)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q has control characters; remove them", name)
	}
	return nil
}
