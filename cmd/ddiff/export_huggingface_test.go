package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/coordinator/report"
	"ddiff/manifest"
	"ddiff/storage"
)

// TestExportHuggingFace writes three items to files of one picture each, in the order of their identities, and reads them
// back. Every column is optional and has a feature, without which datasets would not show images.
func TestExportHuggingFace(t *testing.T) {
	t.Parallel()
	store, err := storage.Open(t.Context(), t.TempDir(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test has ended
	dir := filepath.Join(t.TempDir(), "pictures")
	to, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := &pictureExport{from: report.Folder{Outputs: []report.Output{{Address: "test", Store: store.Store}}}, to: to, limit: 1}
	for i := 2; i >= 0; i-- {
		it := manifest.Item{
			ID: fmt.Sprintf("%064d", i), Name: fmt.Sprintf("image%d", i), Task: "hdr", Method: "ddiff", Params: map[string]float64{"scale": 2},
			Sigma: 0, Width: 8, Height: 8, Fit: manifest.FitCenterCrop, Seed: 1 << 63, Solver: json.RawMessage(`{"steps":3}`),
		}
		r := manifest.Result{Item: it, Outcome: manifest.OutcomeDone, Artifacts: map[string]string{manifest.FileRestored: "x"}, Metrics: manifest.Metrics{PSNR: new(float64(20 + i))}}
		if i == 1 {
			r.Artifacts[manifest.FileTruth] = "x"
		}
		for file := range r.Artifacts {
			if err := store.Store.Put(t.Context(), manifest.ItemKey(it.ID, file), []byte(file+it.Name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.add(manifest.Result{Outcome: manifest.OutcomeFailed}); err != nil {
		t.Fatal(err)
	}
	if err := to.finish(e.copy(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		data, err := os.ReadFile(filepath.Join(dir, "data", fmt.Sprintf("%05d.parquet", i)))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := parquet.Read[pictureRow](bytes.NewReader(data), int64(len(data)))
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, error %v", len(rows), err)
		}
		r := rows[0]
		if *r.Image != fmt.Sprintf("image%d", i) || *r.Params != "scale=2" || *r.Sigma != 0 || *r.Seed != 1<<63 || *r.PSNR != float64(20+i) || r.SSIM != nil ||
			string(r.Restored.Bytes) != "restored.png"+*r.Image || r.Restored.Path != *r.Item+"/restored.png" || (r.Truth != nil) != (i == 1) || r.Measurement != nil {
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
