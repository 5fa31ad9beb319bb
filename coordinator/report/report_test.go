package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
)

func TestWriteStoresTheReport(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := campaign(t, store)
	if _, err := Write(t.Context(), store, testCampaign(), stream(results)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{KeyCSV, KeyPage, KeySummaryJSON, KeySummaryMarkdown, KeyMosaic, "sheets/super_resolution.png", "sheets/hdr.png"} {
		if len(store.files[key]) == 0 {
			t.Errorf("%s is missing", key)
		}
	}
	if got := len(keys(store, "sheets/")); got != 8 {
		t.Errorf("%d sheets, want 8", got)
	}
	if got := strings.Count(string(store.files[KeyCSV]), "\n"); got != len(results)+1 {
		t.Errorf("%d lines in %s, want %d", got, KeyCSV, len(results)+1)
	}
	var s Summary
	if err := json.Unmarshal(store.files[KeySummaryJSON], &s); err != nil || s.Done != 28 || s.Items != len(results) {
		t.Errorf("summary: %d of %d done, %v", s.Done, s.Items, err)
	}
	for key, n := range store.reads {
		if n > 2 { // for the contact sheet and the mosaic
			t.Errorf("%s was read %d times", key, n)
		}
	}
}

func TestWriteDependsOnResultsOnly(t *testing.T) {
	t.Parallel()
	first := newMemory()
	results := campaign(t, first)
	for i := range results {
		results[i].Finished = results[i].Finished.Add(time.Duration(i) * time.Minute)
	}
	items := maps.Clone(first.files)
	if _, err := Write(t.Context(), first, testCampaign(), stream(results)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again := newMemory()
		again.files = maps.Clone(items)
		rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		if _, err := Write(t.Context(), again, testCampaign(), stream(results)); err != nil {
			t.Fatal(err)
		}
		if len(again.files) != len(first.files) {
			t.Errorf("%d files, then %d", len(first.files), len(again.files))
		}
		for key, data := range again.files {
			if !bytes.Equal(data, first.files[key]) {
				t.Errorf("%s depends on the order of the results", key)
			}
		}
	}
	if page := string(first.files[KeyPage]); !strings.Contains(page, "2026-03-01 09:00 UTC to 2026-03-01 09:27 UTC") {
		t.Error("the page does not show when the items were restored")
	}
}

func TestWriteWithoutResults(t *testing.T) {
	t.Parallel()
	store := newMemory()
	if _, err := Write(t.Context(), store, testCampaign(), stream(nil)); err != nil {
		t.Fatal(err)
	}
	if got := string(store.files[KeyCSV]); got != csvHeader+"\n" {
		t.Errorf("csv = %q", got)
	}
}

func TestWriteReportsUnreadableArtifacts(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := campaign(t, store)
	for _, r := range results[:4] {
		delete(store.files, manifest.ItemKey(r.Item.ID, manifest.FileRestored))
	}
	store.files[manifest.ItemKey(results[5].Item.ID, manifest.FileTrace)] = []byte(`{"timestep":[1,2],"data_norm":[1]}`)
	_, err := Write(t.Context(), store, testCampaign(), stream(results))
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "and 2 more") {
		t.Errorf("error = %v, want ErrIncomplete with the number of the others", err)
	}
	if len(store.files[KeyPage]) == 0 || len(keys(store, "sheets/")) != 8 {
		t.Error("the report was not finished")
	}
}

// full is a store on a full disk.
type full struct{ *memory }

var errFull = errors.New("no space left on device")

func (f full) Put(_ context.Context, key string, _ []byte) error {
	return fmt.Errorf("put %s: %w", key, errFull)
}

func TestWriteReturnsTheErrorOfPut(t *testing.T) {
	t.Parallel()
	store := newMemory()
	_, err := Write(t.Context(), full{store}, testCampaign(), stream(campaign(t, store)))
	if !errors.Is(err, errFull) || errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), KeyCSV) {
		t.Errorf("error = %v", err)
	}
}

func TestWriteReturnsCancellation(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := campaign(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, store, testCampaign(), stream(results)); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	shown := galleryOf(t, results, maxItems)
	if _, err := writeSheet(ctx, store, sheetFile{Key: "x"}, shown.tasks[0].first, 3, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("sheet: error = %v, want context.Canceled", err)
	}
	if _, err := writePage(ctx, store, testCampaign(), Summary{}, shown, parts{list: listingOf(t, results, 10)}); !errors.Is(err, context.Canceled) {
		t.Errorf("page: error = %v, want context.Canceled", err)
	}
}

func TestWriteRefusesUnknownRule(t *testing.T) {
	t.Parallel()
	c := testCampaign()
	c.Select = "luckiest"
	store := newMemory()
	if _, err := Write(t.Context(), store, c, stream(nil)); !errors.Is(err, ErrUnknownRule) || len(store.files) != 0 {
		t.Errorf("error = %v, %d files written", err, len(store.files))
	}
}
