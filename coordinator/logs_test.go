package coordinator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// Logs of many attempts are in the order of their ends. Damaged and huge objects are left out.
func TestLogs(t *testing.T) {
	t.Parallel()
	tc, all, part := sharing(t, t.TempDir())
	const attempts = 250
	begin := time.Now().UTC().Truncate(time.Second)
	put := func(campaign, key string, data []byte) {
		t.Helper()
		must(t, tc.store.Put(t.Context(), shared+"/"+record.LogPrefix(campaign, key), data))
	}
	for i := range attempts {
		a := record.AttemptLog{
			ID: fmt.Sprintf("%064x", i), Attempt: 1, Worker: "w", Outcome: record.AttemptRetried,
			At: begin.Add(-time.Duration(i) * time.Second), Lines: []string{strings.Repeat(fmt.Sprint(i), 300), "\x1b[31m"},
		}
		data, err := json.Marshal(a)
		must(t, err)
		must(t, tc.store.Put(t.Context(), shared+"/"+a.Key(all), data))
	}
	put(all, strings.Repeat("f", 64)+".1.damaged.json", []byte("{"))
	put(all, strings.Repeat("f", 64)+".1.huge.json", append([]byte(`{"id":"huge"}`), make([]byte, 2<<20)...))
	put(all, "inner/"+item.Key(strings.Repeat("0", 64), item.FileResult), []byte(`{"id":"inner"}`)) // of another output

	got, more, err := archive.Logs(t.Context(), tc.store, &record.Campaign{ID: all, Output: shared}, "")
	must(t, err)
	if len(got) != attempts || more {
		t.Fatalf("%d records, more %t, want %d", len(got), more, attempts)
	}
	for i, a := range got {
		if want := fmt.Sprintf("%064x", attempts-1-i); a.ID != want {
			t.Fatalf("record %d is of item %s, want %s", i, a.ID, want)
		}
	}
	one, _, err := archive.Logs(t.Context(), tc.store, &record.Campaign{ID: all, Output: shared}, fmt.Sprintf("%064x", 7))
	must(t, err)
	if len(one) != 1 || one[0].Lines[0] != got[attempts-8].Lines[0] {
		t.Errorf("one item: %+v", one)
	}
	restored := strings.Split(resultKeys(t, tc.store)[0], "/")[2]
	done, _, err := archive.Logs(t.Context(), tc.store, &record.Campaign{ID: part, Output: shared}, restored[:16])
	must(t, err)
	if len(done) != 1 || done[0].ID != restored || done[0].Outcome != string(item.OutcomeDone) {
		t.Errorf("a restored item: %+v", done)
	}
	if none, _, err := archive.Logs(t.Context(), tc.store, &record.Campaign{ID: part, Output: shared}, ""); err != nil || len(none) > 0 {
		t.Errorf("the other campaign: %+v, %v", none, err)
	}
	if _, _, err := archive.Logs(t.Context(), tc.store, &record.Campaign{ID: all, Output: shared}, "../"); !errors.Is(err, board.ErrRefused) {
		t.Errorf("an item with a slash: %v", err)
	}
}
