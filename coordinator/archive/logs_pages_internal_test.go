package archive

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// attemptWith stores the record of an attempt with incompressible text of n bytes.
func attemptWith(t *testing.T, a *Archiver, r *submitted, i, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(i), 7))
	text := make([]byte, n*3/4)
	for k := range text {
		text[k] = byte(random.Uint32())
	}
	attempt := manifest.AttemptLog{ID: id(i), Attempt: 1, Worker: "w", Lines: []string{base64.StdEncoding.EncodeToString(text)}}
	data, err := json.Marshal(attempt)
	must(t, err)
	must(t, a.cfg.Store.Put(t.Context(), r.rec.Output+"/"+attempt.Key(r.id), data))
}

// TestLogPages: an answer has at most 200 records and 100 KiB. The answers together have each record once,
// and the last one ends the list.
func TestLogPages(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		records, size int
		want          []int
	}{
		"none":              {0, 0, []int{0}},
		"one":               {1, 10, []int{1}},
		"a full page":       {logPage, 10, []int{logPage}},
		"one more":          {logPage + 1, 10, []int{logPage, 1}},
		"large records":     {7, 30 << 10, []int{3, 3, 1}},
		"one huge record":   {1, 99 << 10, []int{1}},
		"several huge ones": {3, 99 << 10, []int{1, 1, 1}},
		"above the size":    {1, logPageBytes, []int{0}},
	} {
		a, r := archiverOf(t, &now, &strings.Builder{})
		for i := range tt.records {
			attemptWith(t, a, r, i, tt.size)
		}
		seen := map[string]bool{}
		var got []int
		for next := (&request{Campaign: r.id}); ; {
			page, err := a.logs(t.Context(), next)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, attempt := range page.Attempts {
				seen[attempt.ID] = true
			}
			if got = append(got, len(page.Attempts)); page.Last == "" || len(got) > tt.records {
				break
			}
			next.After = page.Last
		}
		total := 0
		for _, n := range got {
			total += n
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || len(seen) != total {
			t.Errorf("%s: pages %v of %d different records, want %v", name, got, len(seen), tt.want)
		}
	}
}

// TestResultsInLogs: the beginning of an identity selects up to 16 items, whose results are in the answer; more are refused.
func TestResultsInLogs(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	a, r := archiverOf(t, &now, &strings.Builder{})
	common := id(0)[:40]
	for i := range logItems + 1 {
		it := item.Item{ID: common + fmt.Sprintf("%024x", i)}
		data, err := json.Marshal(item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeDone})
		must(t, err)
		must(t, a.cfg.Store.Put(t.Context(), r.rec.Output+"/"+item.Key(it.ID, item.FileResult), data))
		page, err := a.logs(t.Context(), &request{Campaign: r.id, Item: common})
		if i == logItems {
			if err == nil || !strings.Contains(err.Error(), "more than 16 items begin with "+common) {
				t.Errorf("%d items: %v", i+1, err)
			}
			break
		}
		if err != nil || len(page.Attempts) != i+1 || page.Last != "" {
			t.Errorf("%d items: %d records, last %q, %v", i+1, len(page.Attempts), page.Last, err)
		}
	}
}
