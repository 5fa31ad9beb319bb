package method

import "ddiff/restore/parameter"

// publishedRow is a row of a preset with the values of a publication, given as names, and numbers or words, in turn.
func publishedRow(preset, task string, steps int, values ...any) Row {
	row := Row{Preset: preset, Task: task, Steps: steps, Values: map[string]parameter.Value{}}
	for i := 0; i+1 < len(values); i += 2 {
		name, _ := values[i].(string)
		switch v := values[i+1].(type) {
		case int:
			row.Values[name] = parameter.Number(float64(v))
		case float64:
			row.Values[name] = parameter.Number(v)
		case string:
			row.Values[name] = parameter.Word(v)
		}
	}
	return row
}
