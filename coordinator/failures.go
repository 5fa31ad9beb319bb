package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"ddiff/internal/coordinator/gc"
	"ddiff/internal/report/result"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// failuresPerFile bounds the lines of one file of a failureList.
const failuresPerFile = 5000

// failureList stores the failed and dead items of a campaign, one JSON object per line, and the inputs that were left out, for reports over several
// campaigns.
type failureList struct {
	store  storage.Store
	prefix string
	lines  bytes.Buffer
	n      int
	files  []string
	err    error
}

func newFailureList(store storage.Store, campaign string) *failureList {
	return &failureList{store: store, prefix: result.FailuresFolder + campaign + "/"}
}

// watch yields the results and lists the failed and dead ones.
func (l *failureList) watch(ctx context.Context, results iter.Seq2[item.Result, error]) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		for r, err := range results {
			if err == nil && r.Outcome != item.OutcomeDone && l.err == nil {
				l.err = l.add(ctx, r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (l *failureList) add(ctx context.Context, r item.Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the failure of item %s: %w", r.Item.Name, err)
	}
	l.lines.Write(append(line, '\n'))
	if l.n++; l.n%failuresPerFile == 0 {
		return l.flush(ctx)
	}
	return nil
}

func (l *failureList) flush(ctx context.Context) error {
	key := fmt.Sprintf("%s%06d.jsonl", l.prefix, len(l.files))
	if err := l.store.Put(ctx, key, bytes.Clone(l.lines.Bytes())); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	l.files = append(l.files, key)
	l.lines.Reset()
	return nil
}

// finish writes the rest, and what was left out, and removes files of an earlier report.
func (l *failureList) finish(ctx context.Context, skips manifest.Skips) error {
	if l.err == nil && l.lines.Len() > 0 {
		l.err = l.flush(ctx)
	}
	if l.err == nil && len(skips) > 0 {
		key := l.prefix + result.FileLeftOut
		l.files, l.err = append(l.files, key), result.PutLeftOut(ctx, l.store, key, skips)
	}
	if l.err != nil {
		return l.err
	}
	stale := map[string]bool{}
	for info, err := range l.store.List(ctx, l.prefix) {
		if err != nil {
			return fmt.Errorf("list %s: %w", l.prefix, err)
		}
		if gc.IsOutputKey(info.Key) { // not of another output inside
			stale[info.Key] = true
		}
	}
	for _, key := range l.files {
		delete(stale, key)
	}
	for key := range stale {
		if err := l.store.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove %s of an earlier report: %w", key, err)
		}
	}
	return nil
}
