package catalogue

import (
	"ddiff/coordinator/shard"
	"ddiff/restore/method"
	"ddiff/restore/prior"
)

// Task is one task with the settings of the first method, DDiff, in every preset.
type Task struct {
	Name    string                     `json:"name"`
	About   string                     `json:"about"`
	Params  map[string]float64         `json:"params"`
	Presets map[string]method.Settings `json:"presets"`
}

// Tasks returns the tasks, and the length of the bundled prior's schedule.
func Tasks(c shard.Catalogue) ([]Task, int, error) {
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
		task := Task{t.Name, t.Doc, params, map[string]method.Settings{}}
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
