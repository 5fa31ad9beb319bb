package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/coordinator/index"
	"ddiff/internal/fuzztest"
	"ddiff/queue"
	"ddiff/storage"
)

// listedStore calls before in place of each listing, which is empty.
type listedStore struct {
	storage.Store
	before func() error
}

func (s listedStore) List(context.Context, string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.before(); err != nil {
			yield(storage.Info{}, err)
		}
	}
}

// answering returns the archiver of a store, and a request for a list.
func answering(before func() error) (*Archiver, []byte) {
	return &Archiver{x: index.New(listedStore{before: before}), cfg: Config{Logger: slog.New(slog.DiscardHandler)}}, []byte(`{"id":"one","verb":"list"}`)
}

// TestRepeatedRequest: a request that is sent again while the leader executes it is executed once, and both have the answer.
func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lists, gate := 0, make(chan struct{})
		a, r := answering(func() error {
			lists++
			<-gate
			return nil
		})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if got := string(a.Answer(t.Context(), r)); got != "{}" {
					t.Errorf("answer %q", got)
				}
			})
		}
		synctest.Wait()
		close(gate)
		if both.Wait(); lists != 1 {
			t.Errorf("executed %d times", lists)
		}
	})
}

// TestFailedRequest: a leader tries a request again after an error, for half a minute, and then is silent.
func TestFailedRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		errors int
		want   string
		after  time.Duration
	}{
		"at once":         {0, "{}", 0},
		"at the third":    {2, "{}", 2 * answerPause},
		"when none waits": {1 << 30, "", requestLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin, left := time.Now(), tt.errors
			a, r := answering(func() error {
				if left--; left >= 0 {
					return errors.New("the store is away")
				}
				return nil
			})
			if got := string(a.Answer(t.Context(), r)); got != tt.want || time.Since(begin) != tt.after {
				t.Errorf("%s: %q after %v", name, got, time.Since(begin))
			}
		})
	}
}

// TestBadRequests: an unknown request is refused, and what is no request has no answer.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	a, _ := answering(nil)
	if got := a.Answer(t.Context(), []byte("garbage")); got != nil {
		t.Errorf("garbage: %q", got)
	}
	if got := string(a.Answer(t.Context(), []byte(`{"id":"1","verb":"drop"}`))); !strings.Contains(got, `unknown request \"drop\"`) {
		t.Errorf("unknown: %q", got)
	}
}

// TestLargestAnswer: an answer fits into a message, or is an error. A page with the longest rows fits.
func TestLargestAnswer(t *testing.T) {
	t.Parallel()
	var page answer
	long := index.Entry{
		ID: strings.Repeat("i", queue.MaxNameBytes), Number: 999999, State: index.Archived, Output: index.OutputDigest(""),
		Row: index.Row{Phase: "cancelled", Priority: "normal", Weight: 1000, Submitted: time.Now(), Finished: time.Now(), Archived: time.Now(), Seconds: 1e9, Cost: 1e6},
	}
	n := &long.Row.Counts
	n.Items, n.Done, n.Failed, n.Dead, n.Cancelled = 1e8, 1e8, 1e8, 1e8, 1e8
	for range listPage {
		page.Keys = append(page.Keys, long.Key())
	}
	for name, out := range map[string]answer{"": page, "the answer has": {Keys: append(page.Keys, page.Keys...)}} {
		data := encode(out)
		var got answer
		must(t, json.Unmarshal(data, &got))
		if len(data) > queue.MaxRecordBytes || (got.Error == "") != (name == "") || !strings.HasPrefix(got.Error, name) {
			t.Errorf("%q: %d bytes, error %q", name, len(data), got.Error)
		}
	}
}

// FuzzAnswer: any message is an answer that is encoded and read again, or an error.
func FuzzAnswer(f *testing.F) {
	f.Add(encode(answer{Keys: []string{"campaign.a", "status.a"}, Sizes: []int{1, 2}, records: [][]byte{[]byte("\n"), []byte("{}")}, Last: "status.a"}))
	for _, message := range []string{"{}", `{"error":"busy"}`, `{"keys":["a"],"sizes":[-1]}`, `{"keys":["a"],"sizes":[9]}` + "\nfew", `{"sizes":[1]}` + "\n{"} {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzztest.Limit(t, 1<<20+64*len(data), func() {
			read, err := decode(data)
			if err != nil {
				return
			}
			again, err := decode(encode(read))
			if err != nil || len(again.records) != len(read.records) {
				t.Fatalf("%d records, %v, want %d", len(again.records), err, len(read.records))
			}
			for i, record := range read.records {
				if !bytes.Equal(again.records[i], record) {
					t.Errorf("record %d is %q, want %q", i, again.records[i], record)
				}
			}
		})
	})
}
