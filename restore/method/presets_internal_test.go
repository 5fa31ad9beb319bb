package method

import "testing"

// TestPresetsAreOfMethods: a row of a misspelt method would belong to none.
func TestPresetsAreOfMethods(t *testing.T) {
	t.Parallel()
	names := Builtin().Names()
	for method := range readPresets() {
		known := false
		for _, name := range names {
			known = known || name == method
		}
		if !known {
			t.Errorf("presets.txt has rows of %q, want one of %v", method, names)
		}
	}
}
