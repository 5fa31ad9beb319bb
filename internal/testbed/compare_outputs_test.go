package testbed

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"ddiff/restore/item"
)

// item writes an item to an output.
func newItem(t *testing.T, output, id, name string, data byte, grey uint8) {
	t.Helper()
	r := item.Result{Item: item.Item{ID: id, Name: name, Task: "hdr", Method: "ddiff"}, Outcome: item.OutcomeDone}
	result, err := json.Marshal(r)
	must(t, err)
	img := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	img.SetNRGBA(2, 1, color.NRGBA{grey, 100, 100, 255})
	var picture bytes.Buffer
	must(t, png.Encode(&picture, img))
	for file, content := range map[string][]byte{
		item.FileResult: result, item.FileData: {data}, item.FileRestored: picture.Bytes(),
	} {
		path := filepath.Join(output, item.Key(id, file))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, content, 0o644))
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	reference := t.TempDir()
	newItem(t, reference, "a", "one", 1, 100)
	newItem(t, reference, "b", "two", 2, 100)
	for name, c := range map[string]struct {
		write func(output string)
		want  Comparison
	}{
		"the same":               {func(o string) { newItem(t, o, "b", "two", 2, 100) }, Comparison{Items: 2}},
		"one grey level":         {func(o string) { newItem(t, o, "b", "two", 2, 101) }, Comparison{Items: 2, Levels: 1}},
		"two grey levels":        {func(o string) { newItem(t, o, "b", "two", 2, 98) }, Comparison{Items: 2, Images: 1, Levels: 2}},
		"a bit of a measurement": {func(o string) { newItem(t, o, "b", "two", 3, 100) }, Comparison{Items: 2, Measurements: 1}},
		"lost":                   {func(string) {}, Comparison{Items: 1, Lost: 1}},
		"extra":                  {func(o string) { newItem(t, o, "b", "two", 2, 100); newItem(t, o, "c", "three", 2, 100) }, Comparison{Items: 2, Extra: 1}},
		"twice":                  {func(o string) { newItem(t, o, "b", "two", 2, 100); newItem(t, o, "c", "two", 2, 100) }, Comparison{Items: 2, Extra: 1, Duplicates: 1}},
	} {
		output := t.TempDir()
		newItem(t, output, "a", "one", 1, 100)
		c.write(output)
		got, err := Compare(reference, output)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		bad := c.want.Lost+c.want.Extra+c.want.Duplicates+c.want.Images+c.want.Measurements > 0
		if (got.Err() != nil) != bad {
			t.Errorf("%s: error %v", name, got.Err())
		}
	}
}
