package run

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	restorer "ddiff/restore/picture"
)

// TestResultsHaveTiles: the campaign of --results has the tiles that a large picture has without it, and none where the memory suffices.
func TestResultsHaveTiles(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rt := onnxtest.Runtime(t)
	p, err := prior.Open(prior.Bundled)
	must(err)
	data, err := raster.EncodePNG(raster.New(3, 200, 200))
	must(err)
	path := filepath.Join(t.TempDir(), "large.png")
	must(os.WriteFile(path, data, 0o600))
	for whole, want := range map[int64]string{1: "128", math.MaxInt64: ""} {
		spec := manifest.Default()
		spec.Tasks = []item.Task{{Name: "denoise"}}
		w := &pictureWriter{
			restoreOptions: restoreOptions{Options: campaign.Options{ComputeOptions: cli.ComputeOptions{}}}, spec: spec, cells: spec.Cells(),
			session: restorer.Config{Prior: p, Large: prior.Tiling{Side: 128, Overlap: 16}, Whole: whole},
		}
		must(w.tileCampaign(t.Context(), []*onnxruntime.Runtime{rt}, nil, []*picture{{name: "large.png", path: path}}))
		if spec.Tile != want || want != "" && (spec.Overlap == nil || *spec.Overlap != 16) {
			t.Errorf("memory %d: tile %q, overlap %v", whole, spec.Tile, spec.Overlap)
		}
	}
}
