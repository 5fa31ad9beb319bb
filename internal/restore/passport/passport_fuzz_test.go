package passport

import (
	"encoding/json"
	"errors"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// FuzzRead: any text of an image is a passport that is stored as it was read, or an error of its kind.
func FuzzRead(f *testing.F) {
	img, err := raster.EncodePNG(raster.New(3, 2, 2))
	if err != nil {
		f.Fatal(err)
	}
	p, err := Of(item.Result{Schema: 1, Item: item.Item{ID: "a", Solver: json.RawMessage(`{"steps":3}`)}, Artifacts: map[string]string{item.FileData: "00"}}, raster.New(3, 2, 2))
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"schema":1,"worker":"w","more":1}`)
	f.Add(`{"schema":2,"item":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := raster.SetPNGText(img, keyword, text)
		if err != nil {
			return // no text of a PNG file
		}
		var p Passport
		fuzztest.Limit(t, 1<<20+2048*len(text), func() { p, err = Read(file) })
		if err != nil {
			if !errors.Is(err, ErrUnreadable) && !errors.Is(err, item.ErrNewer) {
				t.Errorf("error %v of %q", err, text)
			}
			return
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if file, err = raster.SetPNGText(img, keyword, string(data)); err != nil {
			t.Fatal(err)
		}
		again, err := Read(file)
		if err != nil || again.Unknown {
			t.Fatalf("%s: %+v, %v", data, again, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(data) {
			t.Errorf("%s is stored as %s, %v", data, twice, err)
		}
	})
}
