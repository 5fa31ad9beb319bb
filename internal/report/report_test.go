package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/page"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sheet"
	"ddiff/restore/item"
)

func TestWriteWithoutResults(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	if _, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(nil)); err != nil {
		t.Fatal(err)
	}
	if got := string(store.Files[KeyCSV]); !strings.HasPrefix(got, "item,image,task,") || strings.Count(got, "\n") != 1 {
		t.Errorf("csv = %q, want headings", got)
	}
}

func TestWriteReportsUnreadableArtifacts(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := campaign(t, store)
	for _, r := range results[:4] {
		delete(store.Files, item.Key(r.Item.ID, item.FileRestored))
	}
	store.Files[item.Key(results[5].Item.ID, item.FileTrace)] = []byte(`{"timestep":[1,2],"data_norm":[1]}`)
	_, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(results))
	if !errors.Is(err, result.ErrIncomplete) || !strings.Contains(err.Error(), "and 2 more") {
		t.Errorf("error = %v, want ErrIncomplete with the number of the others", err)
	}
	if len(store.Files[KeyPage]) == 0 || len(reporttest.Keys(store, "sheets/")) != 8 {
		t.Error("the report was not finished")
	}
}

// full is a store on a full disk.
type full struct{ *reporttest.Memory }

var errFull = errors.New("no space left on device")

func (f full) Put(_ context.Context, key string, _ []byte) error {
	return fmt.Errorf("put %s: %w", key, errFull)
}

func TestWriteReturnsTheErrorOfPut(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	_, err := Write(t.Context(), full{store}, testCampaign(), reporttest.Stream(campaign(t, store)))
	if !errors.Is(err, errFull) || errors.Is(err, result.ErrIncomplete) || !strings.Contains(err.Error(), KeyCSV) {
		t.Errorf("error = %v", err)
	}
}

func TestWriteReturnsCancellation(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := campaign(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, store, testCampaign(), reporttest.Stream(results)); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	shown := galleryOf(t, results, page.MaxItems)
	if _, err := sheet.Write(ctx, store, sheet.File{Key: "x"}, shown.Tasks[0].Done, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("sheet: error = %v, want context.Canceled", err)
	}
	if _, err := page.Write(ctx, store, testCampaign(), aggregate.Summary{}, shown, page.Parts{List: listingOf(t, results, 10)}); !errors.Is(err, context.Canceled) {
		t.Errorf("page: error = %v, want context.Canceled", err)
	}
}

func TestWriteRefusesUnknownRule(t *testing.T) {
	t.Parallel()
	c := testCampaign()
	c.Select = "luckiest"
	store := reporttest.NewMemory()
	if _, err := Write(t.Context(), store, c, reporttest.Stream(nil)); !errors.Is(err, selection.ErrUnknownRule) || len(store.Files) != 0 {
		t.Errorf("error = %v, %d files written", err, len(store.Files))
	}
}

func TestWriteRefusesInvalidItems(t *testing.T) {
	t.Parallel()
	open := reporttest.Result(t, "hdr", "ddiff", "a.png", 0, reporttest.Ended("running", ""))
	broken := reporttest.Result(t, "hdr", "ddiff", "b.png", 0)
	broken.Item.Params = map[string]float64{"gain": math.NaN()}
	for _, r := range []item.Result{open, broken} {
		store := reporttest.NewMemory()
		_, err := Write(t.Context(), store, testCampaign(), reporttest.Stream([]item.Result{r}))
		if err == nil || !strings.Contains(err.Error(), r.Item.Name) || len(store.Files) != 0 {
			t.Errorf("outcome %s, parameters %v: error %v, %d files", r.Outcome, r.Item.Params, err, len(store.Files))
		}
	}
}
