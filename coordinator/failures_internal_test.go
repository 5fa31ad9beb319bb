package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// Failures are listed in files of 5000 lines; files of an earlier report go, and results that are done are left out. The lists of other
// campaigns and an output inside the folder stay.
func TestFailureList(t *testing.T) {
	t.Parallel()
	const prefix, other = result.FailuresFolder + "c/", result.FailuresFolder + "d/000000.jsonl"
	const inner = prefix + "inner/index.html"
	now := time.Unix(1e9, 0)
	for n, want := range map[int][]int{0: nil, 1: {1}, failuresPerFile: {failuresPerFile}, 2*failuresPerFile + 1: {failuresPerFile, failuresPerFile, 1}} {
		store := decidingRunner(t, &now, &strings.Builder{}).s.cfg.Store
		for _, key := range []string{prefix + "000000.jsonl", prefix + "000007.jsonl", other, inner} {
			must(t, store.Put(t.Context(), key, []byte("old")))
		}
		l := newFailureList(store, "c")
		seen, problems := 0, 0
		for _, err := range l.watch(t.Context(), func(yield func(item.Result, error) bool) {
			for i := range 2 * n {
				outcome := []item.Outcome{item.OutcomeDone, item.OutcomeFailed}[i%2]
				if !yield(item.Result{Outcome: outcome}, nil) {
					return
				}
			}
			yield(item.Result{Outcome: item.OutcomeFailed}, errors.New("no store"))
		}) {
			seen++
			if err != nil {
				problems++
			}
		}
		if err := l.finish(t.Context(), nil); err != nil || seen != 2*n+1 || problems != 1 {
			t.Fatalf("%d results with %d errors: %v", seen, problems, err)
		}
		var got []int
		for info, err := range store.List(t.Context(), prefix) {
			if info.Key == inner {
				continue
			}
			if err != nil || info.Key != fmt.Sprintf("%s%06d.jsonl", prefix, len(got)) {
				t.Fatalf("file %s, %v", info.Key, err)
			}
			data, err := store.Get(t.Context(), info.Key)
			must(t, err)
			got = append(got, strings.Count(string(data), "\n"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d failures: %v lines", n, got)
		}
		for _, key := range []string{other, inner} {
			if _, err := store.Stat(t.Context(), key); err != nil {
				t.Errorf("%s, which is not of this campaign: %v", key, err)
			}
		}
	}
}

// An error of the store does not end the report, but its list.
func TestFailureListWithoutStore(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	store := decidingRunner(t, &now, &strings.Builder{}).s.cfg.Store
	if err := store.Put(t.Context(), result.FailuresFolder+"c", nil); err != nil { // in the place of the folder
		t.Fatal(err)
	}
	l := newFailureList(store, "c")
	seen := 0
	for _, err := range l.watch(t.Context(), func(yield func(item.Result, error) bool) {
		for range failuresPerFile + 1 {
			if !yield(item.Result{}, nil) {
				return
			}
		}
	}) {
		if seen++; err != nil {
			t.Fatal(err)
		}
	}
	if err := l.finish(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "000000.jsonl") || seen != failuresPerFile+1 || l.n != failuresPerFile {
		t.Errorf("error %v, %d results, %d lines", err, seen, l.n)
	}
}
