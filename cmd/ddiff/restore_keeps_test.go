package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	form "ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// TestRestoreKeeps: a restored picture has the format and the comment of its source, and -q leaves the texts of warnings.
func TestRestoreKeeps(t *testing.T) {
	t.Parallel()
	dir, comment := t.TempDir(), []byte("Grandmother, Łódź 1954")
	source, err := raster.DecodePicture(read(t, photograph("coffee")))
	must(t, err)
	small, err := raster.Scale(source.Image, 48, 48)
	must(t, err)
	source.Image, source.Bits = small, 16
	for name, format := range map[string]form.Format{"a.jpg": form.JPEG, "b.tif": form.TIFF} {
		file, err := form.EncodeFile(small, source, nil, form.FileOptions{Format: format})
		must(t, err)
		if format == form.JPEG {
			file = metadata.InsertJPEG(file, []metadata.JPEGSegment{{Marker: 0xfe, Data: comment}})
		}
		must(t, os.WriteFile(filepath.Join(dir, name), file, 0o644))
	}
	e := ddiff(t, "restore", dir, "--task", "denoise", "--sigma", "auto", "--steps", "2", "-q")
	wantCode(t, e, 0)
	wantMessage(t, e, "warning: ", "a.restored.jpg: sigma ", "; restored with sigma ")
	from := filepath.Join(dir, "a.jpg")
	for _, to := range []string{filepath.Join(dir, "a.restored.jpg"), filepath.Join(t.TempDir(), "c.png"), filepath.Join(t.TempDir(), "d.jpg")} {
		if filepath.Dir(to) != dir {
			wantCode(t, ddiff(t, "restore", from, "--task", "denoise", "--sigma", "auto", "--steps", "2", "--out", to), 0)
		}
		if from = to; !bytes.Contains(read(t, to), comment) {
			t.Errorf("%s has no comment", to)
		}
	}
	if bits := tiff.Bits(read(t, filepath.Join(dir, "b.restored.tif"))); bits != 16 {
		t.Errorf("the restored TIFF has %d bits", bits)
	}
	e = ddiff(t, "restore", dir, "--task", "denoise", "--sigma", "auto", "--steps", "2", "-q") // it reads the passports
	wantCode(t, e, 0)
	wantLine(t, e, "done=0 failed=0 dead=0 skipped=2 warned=1")
}
