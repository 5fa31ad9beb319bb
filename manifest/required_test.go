package manifest

import (
	"strings"
	"testing"

	"ddiff/restore/parameter"
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

// TestValidateRequired: a campaign whose rows cannot name the file that a task requires is refused when it is read.
func TestValidateRequired(t *testing.T) {
	t.Parallel()
	v := Vocabulary{Tasks: map[string]parameter.List{"hdr": nil, "inpaint": nil}, Inputs: map[string]string{"hdr": "", "inpaint": "mask"},
		Required: map[string]bool{"inpaint": true}, Methods: []string{"ddiff"}, Presets: []string{"natural"}}
	const want = "tasks[1]: task inpaint needs a mask; give --mask, dataset.mask of the campaign file, or the column mask of a list"
	for dataset, want := range map[string]string{
		"path: photos": want, "path: x.png": want, "path: photos/*.png": want, "path: 'dir:a.csv'": "", "path: l.txt": want,
		"path: photos, measurements: true": want, "path: '{a.png,b.png}'": want,
		"path: photos, mask: m.png": "", "path: l.csv": "", "path: l.JSONL": "", "path: p.parquet": "", "path: 's-{000..031}.tar'": "",
		"path: '{photos,l.csv}'": "", "path: 's3://bucket/photos'": "", "path: 'https://host/list.csv?key=1'": "",
	} {
		s := parsed(t, "dataset: {"+dataset+"}\ntasks: [hdr, inpaint]\n")
		if s.Dataset.Mask != "" {
			s.Tasks = s.Tasks[1:] // hdr does not use it
		}
		checkError(t, dataset, s.Validate(v), want)
	}
}
