package item_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/restore/item"
)

// FuzzResult: any bytes are a result that is stored, with its digest, as it was read, or an error.
func FuzzResult(f *testing.F) {
	psnr := 30.5
	for _, r := range []item.Result{
		{Schema: 1, Item: item.Item{ID: "a", Name: "a", Solver: json.RawMessage(`{"steps":3}`)}, Outcome: item.OutcomeFailed, Reason: "no image"},
		{Schema: 1, Item: item.Item{ID: "a", Image: &item.Source{Path: "/a.png"}, Params: map[string]float64{"x": 1}}, Outcome: item.OutcomeDone,
			Metrics: item.Metrics{"psnr": psnr}, Warnings: []item.Warning{{Code: "flat", Text: "flat"}}, Artifacts: map[string]string{item.FileRestored: "00"}},
	} {
		data, err := item.EncodeResult(&r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r item.Result
		var err error
		fuzztest.Limit(t, 1<<20+1024*len(data), func() {
			r, err = item.DecodeResult(data)
			_ = item.CheckResult(data) // holds for few
		})
		if err != nil {
			return
		}
		if r.Schema > item.SchemaVersion {
			t.Errorf("schema %d is read", r.Schema)
		}
		r.Evaluations()
		r.Event(1)
		item.WarningCodes(r.Warnings)
		stored, err := item.EncodeResult(&r)
		if err != nil {
			t.Fatal(err)
		}
		if err := item.CheckResult(stored); err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		again, err := item.DecodeResult(stored)
		if err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		if twice, err := item.EncodeResult(&again); err != nil || !bytes.Equal(twice, stored) {
			t.Errorf("%s is stored as %s, %v", stored, twice, err)
		}
		// A changed byte that is not white space is noticed.
		at := len(stored) / 3
		if changed := bytes.Clone(stored); stored[at] > ' ' {
			changed[at] ^= 1
			if changed[at] > ' ' && !errors.Is(item.CheckResult(changed), item.ErrResultDigest) {
				t.Errorf("a change of byte %d of %s is not noticed", at, stored)
			}
		}
	})
}
