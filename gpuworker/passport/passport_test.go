package passport

import (
	"errors"
	"strings"
	"testing"

	"ddiff/restore/raster"
)

func TestReadRejects(t *testing.T) {
	t.Parallel()
	img, err := raster.EncodePNG(raster.New(3, 8, 8))
	if err != nil {
		t.Fatal(err)
	}
	with := func(text string) []byte {
		file, err := raster.SetPNGText(img, "ddiff", text)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, c := range []struct {
		name    string
		file    []byte
		want    error
		message string
	}{
		{"without", img, ErrNone, "no passport"},
		{"no PNG", []byte("GIF89a"), ErrUnreadable, "not a PNG"},
		{"cut short", with("{}")[:60], ErrUnreadable, "the file ends"},
		{"no JSON", with("hello"), ErrUnreadable, "invalid character"},
		{"something after it", with(`{"schema":1} {}`), ErrUnreadable, "after top-level value"},
		{"no schema", with(`{}`), ErrUnreadable, "schema 0, this program reads 1"},
		{"a later schema", with(`{"schema":2,"more":1}`), ErrUnreadable, "schema 2, this program reads 1"},
		{"unknown field", with(`{"schema":1,"more":1}`), ErrUnreadable, `unknown field "more"`},
		{"wrong type", with(`{"schema":1,"item":{"seed":-1}}`), ErrUnreadable, "item.seed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(c.file)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.message)
			}
		})
	}
}
