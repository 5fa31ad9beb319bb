package manifest

import (
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// declared is a method with a declaration alone.
type declared struct {
	method.Method
	info method.Info
}

func (d declared) Info() method.Info { return d.info }

// testMethod declares a method with parameters, and rows of presets.
func testMethod(name string, parameters parameter.List, presets ...string) method.Named {
	i := method.Info{Parameters: parameters}
	for _, p := range presets {
		i.Rows = append(i.Rows, method.Row{Preset: p, Task: method.OtherTasks})
	}
	return method.Named{Name: name, Method: declared{info: i}}
}

// testCatalogue has tasks, the method ddiff without parameters, and the preset natural.
func testCatalogue(tasks ...operator.Definition) Catalogue {
	return Catalogue{Operators: tasks, Methods: method.Set{testMethod("ddiff", nil, "natural")}}
}
