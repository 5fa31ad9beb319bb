package results

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"ddiff/coordinator/report/result"
	"ddiff/manifest"
	"ddiff/storage"
)

// TestRotationGain compares with figures computed by hand on a truth of 3×1 pixels.
func TestRotationGain(t *testing.T) {
	t.Parallel()
	store, err := storage.Open(t.Context(), t.TempDir(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test has ended
	results := map[string]*manifest.Result{"missing": {Item: manifest.Item{ID: "missing"}}}
	put := func(id, file string, reds ...uint8) {
		img := image.NewRGBA(image.Rect(0, 0, len(reds), 1))
		for x, r := range reds {
			img.Set(x, 0, color.RGBA{r, 7, 9, 255})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		if err := store.Store.Put(t.Context(), manifest.ItemKey(id, file), b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if results[id] == nil {
			results[id] = &manifest.Result{Item: manifest.Item{ID: id}, Artifacts: map[string]string{}}
		}
		results[id].Artifacts[file] = fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))
	}
	from := result.Folder{Outputs: []result.Output{{Address: "test", Store: store.Store}}}
	for _, tt := range []struct {
		name     string
		restored []uint8
		want     float64
	}{
		{"rotated", []uint8{30, 20, 12}, 10 * math.Log10((20.*20+18*18)/(2*2))}, // of 10, 20, 30
		{"upright", []uint8{12, 20, 30}, -10 * math.Log10((20.*20+18*18)/(2*2))},
		{"symmetric", []uint8{15, 20, 15}, 0},
	} {
		put(tt.name, manifest.FileRestored, tt.restored...)
		put(tt.name, manifest.FileTruth, 10, 20, 30)
		if got, err := rotationGain(t.Context(), from, results[tt.name]); err != nil || !(math.Abs(got-tt.want) <= 1e-9) {
			t.Errorf("%s: %g, error %v, want %g", tt.name, got, err, tt.want)
		}
	}
	put("other size", manifest.FileRestored, 1, 2)
	put("other size", manifest.FileTruth, 10, 20, 30)
	put("damaged", manifest.FileRestored, 1, 2, 3)
	put("damaged", manifest.FileTruth, 10, 20, 30)
	results["damaged"].Artifacts[manifest.FileTruth] = results["damaged"].Artifacts[manifest.FileRestored]
	for _, id := range []string{"other size", "missing", "damaged"} {
		if _, err := rotationGain(t.Context(), from, results[id]); err == nil {
			t.Errorf("%s: no error", id)
		}
	}
}
