package dataset_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// TestMissingDatasets: the error of a missing dataset names the dataset once, without a repetition of its reason.
func TestMissingDatasets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	url, allowWeb := webServer(t, folder, nil)
	name, _, allowS3 := bucket(t, map[string][]byte{"a.png": picture(t, 0)})
	s := sources(t, func(c *dataset.Config) {
		allowS3(c)
		allowWeb(c)
	})
	for _, path := range []string{
		filepath.Join(folder, "none"), filepath.Join(folder, "none.png"), filepath.Join(folder, "none.csv"), filepath.Join(folder, "none.jsonl"),
		filepath.Join(folder, "none.tar"), filepath.Join(folder, "none.parquet"), filepath.Join(folder, "none/*.png"),
		"s3://" + name + "/none", "s3://" + name + "/none.csv", "s3://" + name + "/none.tar", "s3://" + name + "/none.parquet",
		"s3://no-such-bucket/none", "s3://no-such-bucket/none.csv",
		url + "/none.csv", url + "/none.tar", url + "/none.parquet",
	} {
		_, _, err := rows(t, s, manifest.Dataset{Path: path})
		if !errors.Is(err, manifest.ErrNoDataset) && !errors.Is(err, manifest.ErrEmptyDataset) && !errors.Is(err, dataset.ErrNotFound) {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text := err.Error()
		t.Log(text)
		for _, once := range []string{"read dataset", path, "not found", "no such file", "no dataset there"} {
			if strings.Count(text, once) > 1 {
				t.Errorf("%q repeats %q", text, once)
			}
		}
		if !strings.HasPrefix(text, `read dataset "`+path+`": `) || strings.Contains(text, "not found: no such file") {
			t.Errorf("%q", text)
		}
	}
}
