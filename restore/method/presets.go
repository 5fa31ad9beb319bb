package method

import (
	_ "embed" // presets.txt
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ddiff/restore/parameter"
)

// ChosenOn returns the SHA-256 of the image files with which the values of a preset's row were chosen, if they are known
// and the settings have a value of the row. Settings are assignments in one text, such as "steps=120;gamma0=8". Values of
// the parameters in replaced do not count: they were chosen otherwise.
func (s Set) ChosenOn(preset, method, task, settings string, replaced []string) []string {
	m, err := s.Find(method)
	if err != nil {
		return nil
	}
	have := strings.Split(settings, ";")
	row, _ := m.Info().Row(preset, task)
	for name, v := range row.Values {
		if !slices.Contains(replaced, name) && slices.Contains(have, fmt.Sprintf("%s=%v", name, v)) {
			return row.ChosenOn
		}
	}
	return nil
}

// presetTable has the rows of all presets.
//
//go:embed presets.txt
var presetTable string

// presetRows returns the rows of a method.
func presetRows(method string) []Row { return readPresets()[method] }

// readPresets reads presetTable, by method. It panics for a malformed row.
var readPresets = sync.OnceValue(func() map[string][]Row {
	groups := map[string][]string{} // SHA-256 of the photographs
	out := map[string][]Row{}
	for line := range strings.Lines(presetTable) {
		text, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if fields[0] == "photograph" {
			for name := range strings.SplitSeq(fields[2], "+") {
				groups[name] = append(groups[name], fields[1])
			}
			continue
		}
		bad := func(what string) { panic("presets.txt: " + what + ": " + line) }
		if len(fields) < 5 {
			bad("a row has a method, preset, task, steps and photographs")
		}
		steps, err := strconv.Atoi(fields[3])
		if err != nil {
			bad("no number of steps")
		}
		row := Row{Preset: fields[1], Task: fields[2], Steps: steps, Values: map[string]parameter.Value{}}
		for group := range strings.SplitSeq(fields[4], "+") {
			if groups[group] == nil && group != "-" {
				bad("unknown photographs " + group)
			}
			for _, digest := range groups[group] {
				if !slices.Contains(row.ChosenOn, digest) {
					row.ChosenOn = append(row.ChosenOn, digest)
				}
			}
		}
		for _, assignment := range fields[5:] {
			name, value, ok := strings.Cut(assignment, "=")
			if _, twice := row.Values[name]; !ok || twice {
				bad(assignment + " is no assignment, or the second one")
			}
			row.Values[name] = parameter.Word(value)
			if number, err := strconv.ParseFloat(value, 64); err == nil {
				row.Values[name] = parameter.Number(number)
			}
		}
		out[fields[0]] = append(out[fields[0]], row)
	}
	return out
})
