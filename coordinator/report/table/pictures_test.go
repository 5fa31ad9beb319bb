package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/manifest"
)

// TestWritePictures writes three items to files of one picture each, in the order of their identities, and reads them
// back. Every column is optional and has a feature, without which datasets would not show images.
func TestWritePictures(t *testing.T) {
	t.Parallel()
	store, written := reporttest.NewMemory(), map[string][]byte{}
	e := &pictureExport{from: result.Folder{Outputs: []result.Output{{Address: "test", Store: store}}}, limit: 1, put: func(key string, data []byte) error {
		written[key] = bytes.Clone(data)
		return nil
	}}
	for i := 2; i >= 0; i-- {
		it := manifest.Item{
			ID: fmt.Sprintf("%064d", i), Name: fmt.Sprintf("image%d", i), Task: "hdr", Method: "ddiff", Params: map[string]float64{"scale": 2},
			Sigma: 0, Width: 8, Height: 8, Fit: manifest.FitCenterCrop, Seed: 1 << 63, Solver: json.RawMessage(`{"steps":3}`),
		}
		r := manifest.Result{Item: it, Outcome: manifest.OutcomeDone, Artifacts: map[string]string{manifest.FileRestored: "x"}, Metrics: manifest.Metrics{PSNR: new(float64(20 + i))}}
		if i == 1 {
			r.Artifacts[manifest.FileTruth], r.Item.Photons = "x", 500
		}
		for file := range r.Artifacts {
			if err := store.Put(t.Context(), manifest.ItemKey(it.ID, file), []byte(file+it.Name)); err != nil {
				t.Fatal(err)
			}
			r.Artifacts[file] = fmt.Sprintf("%x", sha256.Sum256([]byte(file+it.Name)))
		}
		if err := e.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.add(manifest.Result{Outcome: manifest.OutcomeFailed}); err != nil {
		t.Fatal(err)
	}
	if err := e.copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		data := written[fmt.Sprintf("data/%05d.parquet", i)]
		rows, err := parquet.Read[pictureRow](bytes.NewReader(data), int64(len(data)))
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, error %v", len(rows), err)
		}
		r := rows[0]
		if *r.Image != fmt.Sprintf("image%d", i) || *r.Params != "scale=2" || *r.Sigma != 0 || *r.Seed != 1<<63 || *r.PSNR != float64(20+i) || r.SSIM != nil ||
			string(r.Restored.Bytes) != "restored.png"+*r.Image || r.Restored.Path != *r.Item+"/restored.png" || (r.Truth != nil) != (i == 1) || r.Measurement != nil ||
			(r.Photons != nil) != (i == 1) || i == 1 && *r.Photons != 500 {
			t.Errorf("row %d: %+v", i, r)
		}
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := file.Lookup("huggingface")
		var metadata struct {
			Info struct {
				Features map[string]map[string]string
			}
		}
		if err := json.Unmarshal([]byte(text), &metadata); err != nil {
			t.Fatal(err)
		}
		for _, column := range file.Root().Columns() {
			if !column.Optional() || metadata.Info.Features[column.Name()]["_type"] == "" {
				t.Errorf("column %s: optional %t, feature %v", column.Name(), column.Optional(), metadata.Info.Features[column.Name()])
			}
		}
		if metadata.Info.Features["restored"]["_type"] != "Image" || len(metadata.Info.Features) != len(file.Root().Columns()) {
			t.Errorf("features %v", metadata.Info.Features)
		}
	}
}
