package method

import (
	"fmt"
	"slices"
	"strings"

	"ddiff/restore/parameter"
)

// photographs returns the SHA-256 of the files of examples/images, with which the rows of natural were chosen: those of
// DDiff with all of them, those of DiffPIR, RED-diff, DDRM and DCDP with the first three.
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
		for _, row := range info.Rows {
			if row.Preset != preset || row.Task != task {
				continue
			}
			for name, v := range row.Values {
				if !slices.Contains(replaced, name) && slices.Contains(have, name+"="+assigned(v)) {
					return row.ChosenOn
				}
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
