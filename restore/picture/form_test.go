package picture_test

import (
	"testing"

	"ddiff/restore/picture"
	"ddiff/restore/raster"
)

// TestFormOfPictureWithoutMetadata: where --strip changes nothing, a file has the form whatever another program has added to it.
func TestFormOfPictureWithoutMetadata(t *testing.T) {
	t.Parallel()
	img := raster.New(3, 8, 8)
	source, err := raster.EncodePNG(img)
	must(t, err)
	file, err := picture.EncodeFile(img, decode(t, source), source, picture.FileOptions{Format: picture.PNG})
	must(t, err)
	noted, err := raster.SetPNGText(file, "Comment", "the best one")
	must(t, err)
	for _, strip := range []bool{false, true} {
		ok, err := picture.HasForm(noted, source, picture.FileOptions{Format: picture.PNG, Strip: strip})
		must(t, err)
		if !ok {
			t.Errorf("strip=%v: another form", strip)
		}
	}
}
