package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/prior"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// Catalogue declares what campaigns may name: methods with their presets, tasks, and the prior that limits them. The zero value stands for the
// built-in methods and tasks.
type Catalogue struct {
	Methods   method.Set
	Operators operator.Set
	// Files are the operator files of one campaign by their paths, see [Catalogue.WithFiles].
	Files map[string]*operator.File
	// Prior is nil while the prior is not known.
	Prior *prior.Description
	// New is for new campaigns: values of solver parameters without any effect are an error. Stored campaigns go on.
	New bool
}

// WithFiles returns the catalogue of one campaign: Operators has its operator files under the names of its tasks, too. files
// has the files of the campaign by [item.Task.Operator]; outlines are sufficient.
func (c Catalogue) WithFiles(s *Spec, files map[string]*operator.File) Catalogue {
	if len(files) == 0 {
		return c
	}
	c.Files, c.Operators = files, slices.Clone(c.Operators.Tasks())
	for _, t := range s.Tasks {
		if f := files[t.Operator]; f != nil && !slices.Contains(c.Operators.Names(), t.Name) {
			c.Operators = append(c.Operators, f.Definition(t.Name))
		}
	}
	return c
}

// task returns the declaration of a task, if it is known.
func (c Catalogue) task(name string) (d operator.Definition, known bool) {
	d = c.Operators.Known(name)
	return d, d.Name != ""
}

// isBuiltIn reports whether a task is known and no operator file.
func (c Catalogue) isBuiltIn(name string) bool {
	d, known := c.task(name)
	return known && d.Own == nil
}

// builtIn returns the names of the tasks that are no operator files, sorted.
func (c Catalogue) builtIn() (names []string) {
	for _, d := range c.Operators.Tasks() {
		if d.Own == nil {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// times is the length of the prior's schedule, that of the longest one for a new campaign without a known prior, or 0.
func (c Catalogue) times() int {
	switch {
	case c.Prior != nil:
		return c.Prior.Schedule.Steps()
	case c.New:
		return prior.LongestSchedule
	}
	return 0
}

// OperatorParameters returns the parameters of a task's operator; nil if they are unknown.
func (c Catalogue) OperatorParameters(t item.Task) parameter.List {
	if file := c.Files[t.Operator]; file != nil {
		return file.Parameters.Of(c.times())
	}
	return c.Operators.Known(t.Name).Parameters.Of(c.times())
}

// MethodParameters returns the parameters of a method; nil if it is unknown.
func (c Catalogue) MethodParameters(name string) parameter.List {
	i, _ := c.method(name)
	return i.Parameters.Of(c.times())
}

// method returns the declaration of a method, if it is known.
func (c Catalogue) method(name string) (i method.Info, known bool) {
	m, err := c.Methods.Find(name)
	if err != nil {
		return method.Info{}, false
	}
	return m.Info(), true
}

// lacks returns why a value of a solver parameter has no effect on a task with one method, or "", and whether the value states what holds without it.
func (c Catalogue) lacks(t item.Task, parameter string) (reason string, restated bool) {
	settings, err := c.Methods.Resolve(method.Request{Method: t.Method, Preset: t.Preset, Task: t.Name, Values: t.Solver}, math.MaxInt32) // all times and steps
	if err != nil {
		return "", false // settle reports it
	}
	info, _ := c.method(t.Method)
	if reason = settings.Lacks(info, parameter); reason != "" {
		reason = fmt.Sprintf("has no effect on %s %s", t.Name, reason)
	}
	return reason, t.Solver[parameter] == info.Unset(parameter, t.Preset, t.Name)
}

// largestImage stands for the images of a campaign, whose sizes are unknown before its rows are read: settings that no plan
// admits for it suit no image.
var largestImage = operator.Shape{Channels: 3, Height: 1 << 14, Width: 1 << 14}

// settle returns an error for a task with one method that the method cannot solve with the prior. own: the items have a kernel of their own.
func (c Catalogue) settle(t item.Task, own bool) error {
	settings, err := c.Methods.Resolve(method.RequestOf(t), c.Prior.Schedule.Steps())
	if err != nil {
		return err
	}
	m, err := c.Methods.Find(t.Method)
	if err != nil {
		return err
	}
	if err := m.Info().Admits(settings, &c.Prior.Card); err != nil {
		return err
	}
	if _, err := method.Planned(m, settings, c.Prior.Schedule, largestImage); err != nil {
		return fmt.Errorf("method %s: %w", t.Method, err)
	}
	d, err := c.definition(t, own && c.Operators.Known(t.Name).Given != nil)
	if err != nil {
		return err
	}
	return c.Methods.Serves(t.Method, d, &c.Prior.Card)
}

// definition returns the definition of a task's operator, or, with own, that of items with a kernel of their own: the parameters of the task
// must be its parameters.
func (c Catalogue) definition(task item.Task, own bool) (operator.Definition, error) {
	d, err := c.Operators.Definition(task.Name, own)
	if err != nil {
		return operator.Definition{Name: task.Name, Own: c.Files[task.Operator]}, nil //nolint:nilerr // the name is checked elsewhere
	}
	if own {
		_, err = operator.Set{d}.Parameters(task.Name, task.Params)
	}
	return d, err
}

// Resolver prepares the tasks of items. It also reports the errors of the worker that follow from the settings alone, such as an operator that does not suit the image.
func (c Catalogue) Resolver(p *prior.Description) Resolver {
	return func(t item.Task, own bool, width, height int) (json.RawMessage, map[string]float64, error) {
		settings, op, err := c.Methods.Prepare(t, c.Operators, own, p, operator.Shape{Channels: p.Card.Channels, Height: height, Width: width})
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(settings)
		return raw, op.Params, err
	}
}

// unranged returns the reason why measurements of a task have no values of black and white, or "".
func unranged(d operator.Definition) string {
	switch {
	case d.NotPicture:
		return "its measurement is no picture with black and white, a .npy file has the values of A(x)"
	case d.Own != nil:
		return "its operator is a file, a .npy measurement has the values of A(x)"
	}
	return ""
}
