package photograph_test

import (
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
)

// TestFormOfPictureWithoutMetadata: where --strip changes nothing, a file has the form whatever another program has added to it.
func TestFormOfPictureWithoutMetadata(t *testing.T) {
	t.Parallel()
	img := raster.New(3, 8, 8)
	source, err := raster.EncodePNG(img)
	must(t, err)
	file, err := photograph.EncodeFile(img, decode(t, source), source, photograph.FileOptions{Format: photograph.PNG})
	must(t, err)
	noted, err := raster.SetPNGText(file, "Comment", "the best one")
	must(t, err)
	for _, strip := range []bool{false, true} {
		ok, err := photograph.HasForm(noted, source, photograph.FileOptions{Format: photograph.PNG, Strip: strip})
		must(t, err)
		if !ok {
			t.Errorf("strip=%v: another form", strip)
		}
	}
}
