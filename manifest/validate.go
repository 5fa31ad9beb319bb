package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"ddiff/internal/redact"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// Validate reports all missing, repeated and out-of-range values of the campaign, and names that the program lacks, each
// with the nearest valid name. The error joins one [FieldError] per problem.
func (s *Spec) Validate(known Catalogue) error {
	c := checker{spec: s, Catalogue: known}
	c.campaign()
	c.required()
	c.leftOut()
	c.float32()
	return c.restorations()
}

// ValidateRestorations is Validate for pictures that are restored without a campaign: the fields about rows, results and a cluster have their defaults.
func (s *Spec) ValidateRestorations(known Catalogue) error {
	c := checker{spec: s, Catalogue: known}
	return c.restorations()
}

// ValidatePlacement is Validate for the pool, the budget and the deadline, which may change while a campaign runs.
func (s *Spec) ValidatePlacement() error {
	c := checker{spec: s}
	c.placement()
	if len(c.problems) == 0 {
		return nil
	}
	return joinByLine(c.problems)
}

// restorations checks the settings, and returns all problems.
func (c *checker) restorations() error {
	found := len(c.problems)
	c.ranges()
	c.inRange = len(c.problems) == found
	found = len(c.problems)
	c.names()
	if len(c.problems) == found {
		c.settings()
	}
	c.prior()
	if len(c.problems) == 0 {
		return nil
	}
	return joinByLine(c.problems)
}

// Problems joins an error of [Parse] or [Load] with what [Spec.Validate] finds wrong in the fields that could be read: a file with errors
// of two kinds needs one look. Any other error is returned as it is, also without a campaign.
func (s *Spec) Problems(err error, known Catalogue) error {
	var joined interface{ Unwrap() []error }
	if s == nil || !errors.As(err, &joined) {
		return err
	}
	var all []*FieldError
	for _, one := range joined.Unwrap() {
		if unread, ok := errors.AsType[*FieldError](one); ok {
			all = append(all, unread)
		}
	}
	unread := all
	c := checker{spec: s, Catalogue: known} // without what needs a whole campaign
	c.required()
	c.names()
	for _, found := range c.problems {
		// What is wrong in a field that could not be read follows from that.
		if !slices.ContainsFunc(unread, func(u *FieldError) bool { return u.Field != "" && below(found.Field, u.Field) }) {
			all = append(all, found)
		}
	}
	return joinByLine(all)
}

// below reports whether a field is another one or a part of it.
func below(field, whole string) bool {
	rest, ok := strings.CutPrefix(field, whole)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
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

func (c *checker) required() {
	s := c.spec
	address := func(field, address string) {
		if redact.Credentials(address) {
			c.add(field, errors.New("the address contains credentials; set them in the environment"))
		}
	}
	address("dataset.path", s.Dataset.Path)
	address("output", s.Output)
	address("prior", s.Prior)
	for i, t := range s.Tasks {
		address(taskField(i)+".operator", t.Operator)
		address(taskField(i)+".mask", t.Mask)
		address(taskField(i)+".kernel", t.Kernel)
	}
	if n := len(s.Dataset.Path); n > maxDatasetPath {
		c.add("dataset.path", fmt.Errorf("has %d bytes, at most %d are allowed; write the images into a .txt or .csv list", n, maxDatasetPath))
	}
	if s.Dataset.Path == "" {
		c.add("dataset.path", errors.New("is missing; give a directory, a glob, or a .csv or .jsonl list"))
	}
	if len(s.Tasks) == 0 {
		c.add("tasks", errors.New("is missing or empty; name at least one task"))
	}
	if len(s.Methods) == 0 {
		c.add("methods", errors.New("is empty; name at least one method or remove the field"))
	}
}

// checkNotify refuses an address to which nobody should send. The error lacks the address, whose path may be a secret.
func checkNotify(address string) error {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil
	case err == nil && u.User != nil:
		return errors.New("the address contains credentials; remove them: the messages are signed")
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !net.ParseIP(u.Hostname()).IsLoopback()):
		return errors.New("is not an https address, as in https://hooks.example.org/campaigns")
	}
	return nil
}

// names checks what a campaign names, and its settings one by one.
func (c *checker) names() {
	s := c.spec
	c.tasks()
	seen := map[string]bool{}
	for i, m := range s.Methods {
		field := fmt.Sprintf("methods[%d]", i)
		info, known := c.method(m)
		switch {
		case !known:
			c.add(field, Unknown("method", m, c.Methods.Names()))
		case seen[m]:
			c.add(field, fmt.Errorf("method %q is repeated; remove one", m))
		}
		if known && c.Prior != nil {
			c.add(field, info.Suits(&c.Prior.Card))
		}
		seen[m] = true
	}
	c.inputs()
	c.photonsOf()
	c.solver("solver", s.Solver, s.Methods)
	c.steps("steps", s.Steps, s.Methods)
	if !c.Methods.HasPreset(s.Preset) {
		c.add("preset", Unknown("preset", s.Preset, c.Methods.Presets()))
	}
}

// settings checks the settings of each task together.
func (c *checker) settings() {
	found := len(c.problems)
	if c.New {
		c.idle()
	}
	if c.Prior == nil || !c.inRange || len(c.problems) > found {
		return
	}
	s := c.spec
	for i, t := range s.Tasks {
		e := s.Effective(t)
		for _, e.Method = range s.methodsOf(t) {
			c.add(taskField(i), c.settle(e, s.Dataset.Kernel != "" || t.Kernel != ""))
		}
	}
}

// prior checks the sizes of a campaign for its prior.
func (c *checker) prior() {
	if c.Prior == nil {
		return
	}
	s, m := c.spec, c.Prior.Card.MultipleOf
	if c.inRange {
		tile, _, err := s.Tiles(c.Prior.Card.TileSide(), m)
		if problem, ok := errors.AsType[*FieldError](err); ok {
			c.problems = append(c.problems, problem)
		}
		for i, name := range s.Methods {
			if info, known := c.method(name); known && tile > 0 && (s.Dataset.Fit == item.FitPad || s.Dataset.Size > tile) {
				c.add(fmt.Sprintf("methods[%d]", i), info.Tiled())
			}
		}
	}
	if s.Dataset.Fit != item.FitPad && s.Dataset.Size%m != 0 {
		near := max(1, (s.Dataset.Size+m/2)/m) * m
		c.add("dataset.size", fmt.Errorf("%d is not a multiple of %d, as the prior requires; use %d", s.Dataset.Size, m, near))
	}
}

func (c *checker) name(field, kind, name string, valid []string) {
	if !slices.Contains(valid, name) {
		c.add(field, Unknown(kind, name, valid))
	}
}

func (c *checker) tasks() {
	s, seen := c.spec, map[string]bool{}
	for i, t := range s.Tasks {
		field := taskField(i)
		if t.Name == "" {
			c.add(field, errors.New("has no name; name a task"))
			continue
		}
		if t.Operator != "" && !c.operator(field, t) {
			continue
		}
		if t.Operator == "" && !c.isBuiltIn(t.Name) {
			c.add(field, Unknown("task", t.Name, c.builtIn()))
			continue
		}
		if t.Operator == "" || c.Files[t.Operator] != nil {
			c.params(field+".params.", t, c.OperatorParameters(t))
		}
		c.solver(field+".solver", t.Solver, s.methodsOf(t))
		c.auto(i)
		for k, m := range t.Methods {
			c.name(fmt.Sprintf("%s.methods[%d]", field, k), "method of the campaign", m, s.Methods)
		}
		c.steps(field+".steps", t.Steps, s.methodsOf(t))
		// Tasks that differ only in their number of runs have items in common. A task with a NaN in it cannot be compared;
		// ranges has reported it.
		plain := s.Effective(t)
		plain.Methods, plain.Runs = nil, 0
		if key, err := item.Digest(plain); err == nil {
			methods := s.methodsOf(t)
			if slices.ContainsFunc(methods, func(m string) bool { return seen[string(key[:])+m] }) {
				c.add(field, fmt.Errorf("task %q is repeated with the same settings; remove one", t.Name))
			}
			for _, m := range methods {
				seen[string(key[:])+m] = true
			}
		}
	}
}

// params checks the operator parameters of a task. The row's size can still rule a value out.
func (c *checker) params(path string, t item.Task, parameters parameter.List) {
	for _, name := range slices.Sorted(maps.Keys(t.Params)) {
		p, known := parameters.Find(name)
		switch {
		case known:
			c.add(path+name, p.Test(parameter.Number(t.Params[name])))
		case len(parameters) == 0:
			c.add(path+name, fmt.Errorf("unknown parameter %q: %s has no parameters", clip(name), t.Name))
		default:
			c.add(path+name, Unknown("parameter of "+t.Name, name, parameters.Names()))
		}
	}
}

// steps checks a number of steps for all methods that it applies to.
func (c *checker) steps(field string, steps int, methods []string) {
	for _, m := range methods {
		info, _ := c.method(m)
		if own := info.MaxSteps; own > 0 && steps > own {
			c.add(field, fmt.Errorf("%d is out of range, want 2 to %d for method %s", steps, own, m))
			return
		} else if own == 0 && c.times() > 0 && steps > c.times() {
			c.add(field, fmt.Errorf("%d is out of range, want 2 to %d, the length of the prior's schedule", steps, c.times()))
			return
		}
	}
}

// solver checks solver parameters against those of the methods: one method at least has the parameter, and each
// method that has it accepts the value. Unknown methods, which are reported elsewhere, have any.
func (c *checker) solver(path string, values parameter.Values, methods []string) {
	if len(methods) == 0 {
		return
	}
	var known []string
	parameters := map[string]parameter.List{} // by name, of the methods that have it
	for _, m := range methods {
		if _, known := c.method(m); !known {
			return
		}
		for _, p := range c.MethodParameters(m) {
			if parameters[p.Name] == nil {
				known = append(known, p.Name)
			}
			parameters[p.Name] = append(parameters[p.Name], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, value := path+"."+name, values[name]
		if parameters[name] == nil {
			c.add(field, Unknown("parameter of "+strings.Join(methods, ", "), name, known))
		}
		for _, p := range parameters[name] {
			err := p.Test(value)
			if err != nil && value.Word != "" && len(p.Choices) > 0 {
				err = Unknown("value", value.Word, p.Words())
			}
			if err != nil {
				c.add(field, err)
				break
			}
		}
	}
}

// idle refuses values of a solver parameter that have an effect on none of the tasks for which the campaign gives one, at the first of them.
// Values of a file whose tasks, methods or preset the command line replaces or leaves out are left alone.
func (c *checker) idle() {
	s, effective := c.spec, map[string]bool{}
	replaced := len(s.LeftOut) > 0 || s.overrides["tasks"] != "" || s.overrides["methods"] != "" || s.overrides["preset"] != ""
	type problem struct{ field, reason string }
	problems := map[string]problem{}
	for i, t := range s.Tasks {
		e := s.Effective(t)
		for _, e.Method = range s.methodsOf(t) {
			for name := range e.Solver {
				field := "solver." + name
				if _, own := t.Solver[name]; own {
					field = taskField(i) + "." + field
				}
				_, ok := c.MethodParameters(e.Method).Find(name)
				if !ok || replaced && s.lines[field] > 0 && s.overrides["solver."+name] == "" {
					continue
				}
				reason, restated := c.lacks(e, name)
				switch {
				case reason == "":
					effective[name] = true
				case !restated:
					problems[name] = cmp.Or(problems[name], problem{field, reason})
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		if p := problems[name]; !effective[name] {
			c.add(p.field, errors.New(p.reason))
		}
	}
}

// checkRanges returns the problems of campaign and ranges.
func (s *Spec) checkRanges() []*FieldError {
	c := checker{spec: s}
	c.campaign()
	c.ranges()
	return c.problems
}

// ranges checks the values of restorations whose range does not depend on the program.
func (c *checker) ranges() {
	s := c.spec
	if r := s.Dataset.MeasurementRange; r != nil {
		c.add("dataset.measurement_range", checkRange(*r))
	}
	c.add("dataset.mask_shows", s.Dataset.DrawForm().CheckMask())
	c.add("dataset.kernel_form", s.Dataset.DrawForm().CheckKernel())
	for i, t := range s.Tasks {
		path := taskField(i) + "."
		for _, p := range slices.Sorted(maps.Keys(t.Params)) {
			if x := t.Params[p]; math.IsNaN(x) || math.IsInf(x, 0) {
				c.add(path+"params."+p, fmt.Errorf("%v is not a finite number", x))
			}
		}
		if t.Sigma != nil {
			c.add(path+"sigma", t.Sigma.Check())
		}
		c.photons(path+"photons", t.Photons)
		c.leastSteps(path+"steps", t.Steps)
		c.integer(path+"runs", cmp.Or(t.Runs, 1), 1, 1000)
	}
	c.leastSteps("steps", s.Steps)
	c.add("sigma", s.Sigma.Check())
	c.photons("photons", s.Photons)
	c.integer("runs", s.Runs, 1, 1000)
	c.integer("batch", s.Batch, 0, 1024)
	if s.Precision != "" {
		c.name("precision", "value", string(s.Precision), append(texts(parameter.Precisions()), string(PrecisionAuto)))
	}
	c.tile(s)
	_, err := item.KeptStates(s.KeepStates)
	c.add("keep_states", err)
}

// campaign checks the values of rows, results and a cluster whose range does not depend on the program.
func (c *checker) campaign() {
	s := c.spec
	c.add("name", checkName(s.Name))
	c.integer("dataset.size", s.Dataset.Size, 8, 4096)
	c.name("dataset.fit", "value", string(s.Dataset.Fit), texts(item.Fits()))
	c.integer("dataset.limit", s.Dataset.Limit, 0, math.MaxInt32)
	c.columns("dataset.columns", s.Dataset.Columns)
	c.name("select", "value", string(s.Select), texts(Selections()))
	c.notEmpty("prior", s.Prior)
	c.notEmpty("output", s.Output)
	c.integer("attempts", s.Attempts, 1, 100)
	c.add("notify", checkNotify(s.Notify))
	c.placement()
	if s.Split != nil {
		field, err := s.Split.Check()
		c.add("split."+field, err)
	}
}

// placement checks what may change while a campaign runs.
func (c *checker) placement() {
	s := c.spec
	if s.Pool != "" {
		c.add("pool", CheckPool(s.Pool))
	}
	field, err := s.Budget.Check()
	c.add("budget."+field, err)
	if _, err := time.Parse(time.RFC3339, s.Deadline); s.Deadline != "" && err != nil {
		c.add("deadline", fmt.Errorf("%q is no time; give one with its zone, as 2026-12-01T08:00:00Z or 2026-12-01T09:00:00+01:00", clip(s.Deadline)))
	}
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// checker collects the problems of a spec.
type checker struct {
	Catalogue
	spec     *Spec
	problems []*FieldError
	inRange  bool // ranges found nothing
}

// add records the error of a field, unless it is nil.
func (c *checker) add(field string, err error) {
	if err != nil {
		c.problems = append(c.problems, c.spec.problem(field, err))
	}
}

func (c *checker) integer(field string, x, lo, hi int) {
	if x < lo || x > hi {
		c.add(field, fmt.Errorf("%d is out of range, want %d to %d", x, lo, hi))
	}
}

func (c *checker) leastSteps(field string, x int) {
	if x != 0 && x < 2 {
		c.add(field, fmt.Errorf("%d is out of range, want at least 2, or 0 for the default", x))
	}
}

func (c *checker) notEmpty(field, x string) {
	if x == "" {
		c.add(field, errors.New("is empty; give a value or remove the field"))
	}
}

func (c *checker) columns(field string, columns map[string]string) {
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
