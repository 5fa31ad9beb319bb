// Package catalogue describes tasks and methods as ddiff tasks --json, ddiff methods --json and the HTTP API give them.
package catalogue

import (
	"slices"

	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// Method describes one method.
type Method struct {
	Name       string          `json:"name"`
	About      string          `json:"about"`
	Citation   string          `json:"citation"`
	Steps      int             `json:"steps"`
	MaxSteps   int             `json:"max_steps,omitempty"` // 0: the length of the prior's schedule
	Parameters []parameterInfo `json:"parameters"`
	Presets    []method.Row    `json:"presets"`
	Curves     []method.Curve  `json:"curves"`
}

type parameterInfo struct {
	Name    string           `json:"name"`
	Kind    string           `json:"kind"`
	Range   string           `json:"range"`
	Min     *float64         `json:"min,omitempty"`
	Max     *float64         `json:"max,omitempty"`
	Words   []string         `json:"words,omitempty"`
	Unit    string           `json:"unit,omitempty"`
	Default *parameter.Value `json:"default"` // null: a preset's row or the campaign must state the value
	Doc     string           `json:"doc"`
	With    []string         `json:"with,omitempty"` // see parameter.Parameter.With
}

func describe(p parameter.Parameter) parameterInfo {
	i := parameterInfo{Name: p.Name, Kind: p.Kind(), Range: p.Range(), Words: p.Words(), Unit: p.Unit, Default: new(p.Start()), Doc: p.Doc, With: p.With}
	if i.Kind == "number" || i.Kind == "integer" {
		i.Min, i.Max = &p.Min, &p.Max
	}
	return i
}

// Methods returns the methods with their parameters, preset rows and curves.
func Methods(set method.Set) (methods []Method) {
	for _, m := range set.Infos() {
		info := Method{
			Name: m.Name, About: m.About, Citation: m.Citation, Steps: m.Steps, MaxSteps: m.MaxSteps, Presets: m.Rows, Curves: m.Curves,
		}
		for _, p := range m.Parameters {
			i := describe(p)
			if slices.Contains(m.Required, p.Name) {
				i.Default = nil
			}
			info.Parameters = append(info.Parameters, i)
		}
		methods = append(methods, info)
	}
	return methods
}

// Task is one task with the settings of the first method, DDiff, in every preset.
type Task struct {
	Name       string                     `json:"name"`
	About      string                     `json:"about"`
	Params     map[string]float64         `json:"params"` // the defaults
	Parameters []parameterInfo            `json:"parameters"`
	Presets    map[string]method.Settings `json:"presets"`
}

// Tasks returns the tasks, and the length of the bundled prior's schedule.
func Tasks(c manifest.Catalogue) ([]Task, int, error) {
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		return nil, 0, err
	}
	methods := c.Methods
	first, total := methods.Infos()[0], p.Schedule.Steps()
	var tasks []Task
	for _, t := range c.Operators.Tasks() {
		params, err := t.Parameters.Complete(nil)
		if err != nil {
			return nil, 0, err
		}
		task := Task{t.Name, t.Doc, params, []parameterInfo{}, map[string]method.Settings{}}
		for _, p := range t.Parameters {
			task.Parameters = append(task.Parameters, describe(p))
		}
		for _, name := range methods.Presets() {
			s, err := methods.Resolve(method.Request{Method: first.Name, Preset: name, Task: t.Name}, total)
			if err != nil {
				return nil, 0, err
			}
			task.Presets[name] = s
		}
		tasks = append(tasks, task)
	}
	return tasks, total, nil
}
