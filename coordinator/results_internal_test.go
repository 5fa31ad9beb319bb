package coordinator

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/storage"
)

// countedStore lists as many results as it has.
type countedStore struct {
	storage.Store
	results, others int
}

func (s countedStore) List(context.Context, string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for i := range s.results + s.others {
			file := manifest.FileTrace
			if i < s.results {
				file = manifest.FileResult
			}
			if !yield(storage.Info{Key: manifest.ItemKey(id(i%3), file)}, nil) {
				return
			}
		}
	}
}

// TestOtherResults counts the results of other campaigns in the output of a Run, and stops at the limit of keys.
func TestOtherResults(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	r.ledger.Add(id(0))
	r.results = countedStore{results: 6, others: 5}
	if n, more := r.otherResults(t.Context()); n != 0 || more {
		t.Errorf("a cluster has a folder of its own: %d, %t", n, more)
	}
	r.s.cfg.run = &RunConfig{}
	for others, want := range map[int]bool{5: false, maxCounted - 6: false, maxCounted - 5: true} {
		r.results = countedStore{results: 6, others: others}
		if n, more := r.otherResults(t.Context()); n != 4 || more != want {
			t.Errorf("%d keys: %d results, more %t", 6+others, n, more)
		}
	}
}
