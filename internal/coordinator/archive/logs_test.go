package archive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

var id, must = boardtest.ID, boardtest.Must

// TestManyLogs: Logs reads 2,000 records, of 16 MiB together, and says that there are more. A record above 100 KiB is left out.
func TestManyLogs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		records, size, want int
		more                bool
	}{
		"none":            {0, 0, 0, false},
		"one":             {1, 10, 1, false},
		"all":             {2000, 10, 2000, false},
		"one more":        {2001, 10, 2000, true},
		"large records":   {170, 98 << 10, 166, true},
		"above the limit": {1, 100 << 10, 0, false},
	} {
		s, err := storage.NewDir(t.TempDir())
		must(t, err)
		c := &record.Campaign{ID: "night", Output: "out"}
		for i := range tt.records {
			attempt := record.AttemptLog{ID: id(i), Attempt: 1, Worker: "w", Lines: []string{strings.Repeat("x", tt.size)}}
			data, err := json.Marshal(attempt)
			must(t, err)
			must(t, s.Put(t.Context(), "out/"+attempt.Key(c.ID), data))
		}
		got, more, err := archive.Logs(t.Context(), s, c, "")
		if err != nil || len(got) != tt.want || more != tt.more {
			t.Errorf("%s: %d records, more %t, %v; want %d, %t", name, len(got), more, err, tt.want, tt.more)
		}
	}
}

// TestResultsInLogs: the beginning of an identity selects up to 16 items, whose results are in the answer; more are refused.
func TestResultsInLogs(t *testing.T) {
	t.Parallel()
	s, err := storage.NewDir(t.TempDir())
	must(t, err)
	common, c := id(0)[:40], &record.Campaign{ID: "night", Output: "out"}
	for i := range 17 {
		it := item.Item{ID: common + fmt.Sprintf("%024x", i)}
		data, err := json.Marshal(item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeDone})
		must(t, err)
		must(t, s.Put(t.Context(), "out/"+item.Key(it.ID, item.FileResult), data))
		got, more, err := archive.Logs(t.Context(), s, c, common)
		if i == 16 {
			if err == nil || !strings.Contains(err.Error(), "more than 16 items begin with "+common) {
				t.Errorf("%d items: %v", i+1, err)
			}
		} else if err != nil || len(got) != i+1 || more {
			t.Errorf("%d items: %d records, more %t, %v", i+1, len(got), more, err)
		}
	}
}
