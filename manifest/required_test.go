package manifest

import (
	"strings"
	"testing"
)

// TestCheckInput: a task that needs a file gets it, and no other.
func TestCheckInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row      Overrides
		input    string
		required bool
		want     string
	}{
		{Overrides{}, "mask", false, ""},
		{Overrides{}, "", false, ""},
		{Overrides{Mask: "m.png"}, "mask", true, ""},
		{Overrides{}, "mask", true, "task inpaint needs a mask; give --mask, dataset.mask of the campaign file, or the column mask of a list"},
		{Overrides{Kernel: "k.png"}, "mask", true, "task inpaint does not use a kernel, it uses a mask"},
	} {
		err := c.row.checkInput("inpaint", c.input, c.required)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
}
