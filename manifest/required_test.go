package manifest

import (
	"testing"

	"ddiff/restore/operator"
)

// TestValidateRequired: a campaign whose rows cannot name the file that a task requires is refused when it is read.
func TestValidateRequired(t *testing.T) {
	t.Parallel()
	v := testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "inpaint", Input: "mask", Required: true})
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
