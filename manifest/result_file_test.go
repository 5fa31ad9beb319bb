package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"ddiff/restore/item"
)

// TestResultDigest: a change of any field of a result.json is noticed, a change of white space is not.
func TestResultDigest(t *testing.T) {
	t.Parallel()
	psnr := 28.25
	r := &item.Result{
		Schema: item.SchemaVersion, Outcome: item.OutcomeDone, Seconds: 1.5, Steps: 100, Batch: 2,
		Metrics: item.Metrics{"psnr": psnr}, Finished: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Item: item.Item{ID: "abc", Name: `<a> & "b"`, Campaign: "c", Index: 7},
	}
	data, err := item.EncodeResult(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := item.CheckResult(data); err != nil {
		t.Fatal(err)
	}
	var back item.Result
	if err := json.Unmarshal(data, &back); err != nil || back.Item.Index != 7 || back.Steps != 100 {
		t.Fatalf("read back %+v, error %v", back, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		t.Fatal(err)
	}
	if err := item.CheckResult(compact.Bytes()); err != nil {
		t.Errorf("without white space: %v", err)
	}
	for _, change := range [][2]string{
		{`"schema": 1`, `"schema": 2`}, {`"outcome": "done"`, `"outcome": "dead"`}, {`"steps": 100`, `"steps": 10`},
		{`"seconds": 1.5`, `"seconds": 1.4`}, {`"campaign": "c"`, `"campaign": "d"`}, {`"index": 7`, `"index": 8`},
		{`"psnr": 28.25`, `"psnr": 29.25`}, {`"batch": 2,`, `"batch": 2, "note": "x",`}, {`"sha256": "`, `"sha256": "0`},
		{"\"\n}", "\", \"more\": 1}"},
	} {
		edited := bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(edited, data) {
			t.Fatalf("no %s in %s", change[0], data)
		}
		if err := item.CheckResult(edited); !errors.Is(err, item.ErrResultDigest) {
			t.Errorf("%s: error %v", change[1], err)
		}
	}
	old, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := item.CheckResult(old); !errors.Is(err, item.ErrResultDigest) {
		t.Errorf("a file without a digest: %v", err)
	}
}
