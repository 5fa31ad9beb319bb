package passport

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
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
		{"a later schema", with(`{"schema":2,"item":[]}`), item.ErrNewer, "schema is 2, this version knows 1; use that version"},
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

// TestAttackNewerFields reads a passport of a version that has more fields of the same schema.
func TestAttackNewerFields(t *testing.T) {
	t.Parallel()
	img, err := raster.EncodePNG(raster.New(3, 8, 8))
	if err != nil {
		t.Fatal(err)
	}
	for text, unknown := range map[string]bool{
		`{"schema":1,"worker":"w"}`: false, `{"schema":1,"worker":"w","more":1}`: true, `{"schema":1,"worker":"w","item":{"more":{}}}`: true,
	} {
		file, err := raster.SetPNGText(img, "ddiff", text)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := Read(file); err != nil || p.Worker != "w" || p.Unknown != unknown {
			t.Errorf("%s: worker %q, unknown %v, error %v", text, p.Worker, p.Unknown, err)
		}
	}
}
