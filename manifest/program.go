package manifest

import (
	"slices"

	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// Program declares what a campaign may name: tasks, methods and presets, and the prior that limits them.
type Program struct {
	// Operators are the tasks, with those of the operator files that the caller has read. Files has these files by their paths.
	Operators operator.Set
	Files     map[string]*operator.File
	Methods   method.Set
	// Prior is nil while the prior is not known.
	Prior *prior.Card
	// MaxSteps is the length of the prior's schedule, 0 while it is not known.
	MaxSteps int
	// Settle returns an error for a task, with the campaign's settings, that a method of a preset cannot solve. Nil while the prior is not known.
	Settle func(preset string, task TaskSpec, method string) error
	// Idle returns why a value of a solver parameter has no effect on a task, with the campaign's settings, by a method of a preset, or "", and
	// whether the value states what holds without it. Nil: it is not checked, as in campaigns that were stored when such values were accepted.
	Idle func(preset string, task TaskSpec, method, parameter string) (reason string, restated bool)
}

// task returns the declaration of a task, if it is known.
func (p Program) task(name string) (d operator.Definition, known bool) {
	d = p.Operators.Known(name)
	return d, d.Name != ""
}

// isBuiltIn reports whether a task is known and no operator file.
func (p Program) isBuiltIn(name string) bool {
	d, known := p.task(name)
	return known && d.Own == nil
}

// builtIn returns the names of the tasks that are no operator files, sorted.
func (p Program) builtIn() (names []string) {
	for _, d := range p.Operators.Tasks() {
		if d.Own == nil {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// OperatorParameters returns the parameters of a task's operator; nil if they are unknown.
func (p Program) OperatorParameters(t TaskSpec) parameter.List {
	if file := p.Files[t.Operator]; file != nil {
		return file.Parameters.Of(p.MaxSteps)
	}
	d, _ := p.task(t.Name)
	return d.Parameters.Of(p.MaxSteps)
}

// MethodParameters returns the parameters of a method; nil if it is unknown.
func (p Program) MethodParameters(name string) parameter.List {
	i, _ := p.method(name)
	return i.Parameters.Of(p.MaxSteps)
}

// method returns the declaration of a method, if it is known.
func (p Program) method(name string) (i method.Info, known bool) {
	m, err := p.Methods.Find(name)
	if err != nil {
		return method.Info{}, false
	}
	return m.Info(), true
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
