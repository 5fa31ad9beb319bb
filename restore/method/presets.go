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

// photographs returns the SHA-256 of the files of examples/images, with which the rows of DDiff in gradient for the paper's tasks were
// chosen, and with the first three some values of RED-diff, DDRM and DCDP in natural.
func photographs() []string {
	return []string{
		"6920df7795cecc620fde643c0caa984e5f36cc657d580c50185f298e65c4332b", // astronaut
		"e95e38df548e114e70bc4fd4186d96c46ff02e9cd11abec4594ee7055a8117e8", // chelsea
		"36647fac1777795aab040d342976333e585b2864c59b2d26eac7df2886955d4d", // coffee
		"83da0ec71ace69fc7fdc6e8974044d65d257b4aaf85002fea485418ea65f58a2", // hubble_deep_field
		"a3c92a667c056e1c32c50ac8936e95cb8de693774c8c7cb5988f9010aea55fc2", // retina
		"c6e4e452069a7a9f1dfa0722bd9c7f29d607e177739f0626b9479cb82707a831", // rocket
	}
}

// tuningPhotographs returns the SHA-256 of the files that scripts/tuning-photographs.sh fetches, with which the rows of DDiff in natural were chosen,
// and those in gradient for tasks that are not the paper's: that of colorize with all of them, that of denoise with the group four, the others with
// the first six.
func tuningPhotographs() []string {
	return []string{
		"8a67c2cb0be8c46b70c237311a4fa4d2b4ac7d39568135384787801fa5cc9a91", // Dune.jpg
		"d3095ee09d425ef23d27155412136cf14fc3c9af76ca58b452f55e23da324e78", // Garden.jpg
		"e35a9a4126ef969c90b29c038058c5a575a20eadd84106a37bf1fa9931e7b61d", // LadyBird.jpg
		"77ca53077831d3237f73393a91fc879158abc046d852941c26e90de336356957", // Storm.jpg
		"f4a6bf48b97d97715413f9ebd2d8744bd46df0e492bc8326e2513d51084f2612", // castle-maintenon.jpg
		"adb9e2834a8a3db40ca3817452b956ada527085e5aa2bd604c465651a3834ae4", // panther-chameleon-female.jpg
		"5c30118205982da441bf7e6a1ada636a8a0be879408140b3148280c665ed6bce", // Aqua.jpg
		"19c78500ac00a622e19907ab9cc7d06d46fe08c4a6142759a84195696150ec07", // Wood.jpg
	}
}

// photographGroups returns the photographs by the names of presets.txt. "four" are Garden, Storm, castle-maintenon and
// panther-chameleon-female, "search" are Garden, LadyBird and castle-maintenon.
func photographGroups() map[string][]string {
	bundled, tuning := photographs(), tuningPhotographs()
	return map[string][]string{
		"bundled": bundled, "three_bundled": bundled[:3], "tuning": tuning, "six": tuning[:6],
		"four": {tuning[1], tuning[3], tuning[4], tuning[5]}, "search": {tuning[1], tuning[2], tuning[4]},
	}
}

// ChosenOn returns the SHA-256 of the image files with which the values of a preset's row were chosen, if they are known
// and the settings have a value of the row. Settings are assignments in one text, such as "steps=120;gamma0=8". Values of
// the parameters in replaced do not count: they were chosen otherwise.
func (s Set) ChosenOn(preset, method, task, settings string, replaced []string) []string {
	have := strings.Split(settings, ";")
	for _, m := range s.All() {
		info := m.Info()
		if info.Name != method {
			continue
		}
		row, _ := info.Row(preset, task)
		for name, v := range row.Values {
			if !slices.Contains(replaced, name) && slices.Contains(have, name+"="+assigned(v)) {
				return row.ChosenOn
			}
		}
	}
	return nil
}

// assigned is a value as settings have it.
func assigned(v parameter.Value) string {
	if v.Word != "" {
		return v.Word
	}
	return fmt.Sprint(v.Number)
}

// presetTable has the rows of all presets.
//
//go:embed presets.txt
var presetTable string

// presetRows returns the rows of a method.
func presetRows(method string) []Row { return readPresets()[method] }

// readPresets reads presetTable, by method. It panics for a malformed row.
var readPresets = sync.OnceValue(func() map[string][]Row {
	groups := photographGroups()
	out := map[string][]Row{}
	for line := range strings.Lines(presetTable) {
		text, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
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
			row.ChosenOn = union(row.ChosenOn, groups[group])
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

// union returns a and the elements of b that a lacks.
func union(a, b []string) []string {
	return append(slices.Clone(a), slices.DeleteFunc(slices.Clone(b), func(s string) bool { return slices.Contains(a, s) })...)
}
