package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/sweep"
	"ddiff/restore/item"
)

// TestParquetEqualsCSV reads back what was written.
func TestParquetEqualsCSV(t *testing.T) {
	t.Parallel()
	results := append(reporttest.SweepResults(t), reporttest.Result(t, "hdr", "ddiff", "c", 0, reporttest.Ended(item.OutcomeDead, "killed")))
	var file bytes.Buffer
	reporttest.Must(t, WriteParquet(&file, reporttest.Stream(results), nil))
	rows, err := parquet.Read[struct {
		Item    string   `parquet:"item"`
		Image   string   `parquet:"image"`
		Task    string   `parquet:"task"`
		Params  string   `parquet:"params"`
		Sigma   float64  `parquet:"sigma"`
		Size    string   `parquet:"size"`
		Prior   string   `parquet:"prior"`
		Outcome string   `parquet:"outcome"`
		Reason  string   `parquet:"reason"`
		PSNR    *float64 `parquet:"psnr"`
	}](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(rows) != len(results) {
		t.Fatalf("%d rows, error %v, want %d", len(rows), err, len(results))
	}
	var text bytes.Buffer
	reporttest.Must(t, WriteCSV(&text, reporttest.Stream(results), nil))
	lines := strings.Split(text.String(), "\n")
	for i, r := range rows {
		if !strings.HasPrefix(lines[i+1], strings.Join([]string{r.Item, r.Image, r.Task, r.Params, sweep.Exact(r.Sigma), "", r.Size, r.Prior}, ",")) {
			t.Errorf("row %d: %+v, in the CSV %s", i, r, lines[i+1])
		}
		if dead := r.Outcome == "dead"; dead != (r.PSNR == nil) || dead != (r.Reason == "killed") {
			t.Errorf("row %d: outcome %s, reason %q, PSNR %v", i, r.Outcome, r.Reason, r.PSNR)
		}
	}
}
