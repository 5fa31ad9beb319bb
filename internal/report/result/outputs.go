// Package result reads the results of any number of outputs as a stream, with the scores that were computed after solving, and selects
// among them: [Filter] by properties, [Versions] by versions of metrics. [Folder] is the store of a report over several outputs. A further
// property that --where selects by is one case in filter.go.
package result

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/restore/item"
	"ddiff/storage"
)

// Output is an output that [Results] reads.
type Output struct {
	// Address names the output in errors.
	Address string
	Store   outputStore
}

// outputStore is the part of a store that [Results] needs.
type outputStore interface {
	Get(ctx context.Context, key string) ([]byte, error)
	List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error]
}

// ReadCalls is the number of results that are read concurrently.
const ReadCalls = 16

// Results yields every result of the outputs: the stored results of all campaigns, and the failed and dead items of
// their reports that no campaign has restored since. An item in several outputs is yielded once. A result that cannot be
// read ends the sequence with an error that names it. Results have the scores of all outputs.
func Results(ctx context.Context, outputs []Output) iter.Seq2[item.Result, error] {
	return WithScores(ctx, outputs, func(yield func(item.Result, error) bool) {
		seen := make(map[item.Identity]struct{})
		isNew := func(id string) bool {
			k, ok := item.ParseIdentity(id)
			if _, known := seen[k]; known || !ok {
				return false
			}
			seen[k] = struct{}{}
			return true
		}
		for _, o := range outputs {
			if !o.results(ctx, isNew, yield) {
				return
			}
		}
		for _, o := range outputs {
			if !o.failures(ctx, isNew, yield) {
				return
			}
		}
	})
}

// results yields the stored results. It returns false when the sequence has ended.
func (o Output) results(ctx context.Context, isNew func(id string) bool, yield func(item.Result, error) bool) bool {
	fail := func(err error) bool {
		yield(item.Result{}, fmt.Errorf("read %s: %w", o.Address, err))
		return false
	}
	var ids []string
	flush := func() bool {
		found := make([]item.Result, len(ids))
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(ReadCalls)
		for i, id := range ids {
			group.Go(func() (err error) {
				found[i], err = o.read(inner, item.Key(id, item.FileResult), id)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return fail(err)
		}
		ids = ids[:0]
		return !slices.ContainsFunc(found, func(r item.Result) bool { return !yield(r, nil) })
	}
	for info, err := range o.Store.List(ctx, item.ItemsFolder) {
		if err != nil {
			return fail(err)
		}
		if id, ok := item.ResultOf(info.Key); ok && isNew(id) {
			ids = append(ids, id)
		}
		if len(ids) == 32*ReadCalls && !flush() {
			return false
		}
	}
	return flush()
}

func (o Output) read(ctx context.Context, key, id string) (item.Result, error) {
	var r item.Result
	data, err := o.Store.Get(ctx, key)
	if err != nil {
		return r, err
	}
	r, err = item.DecodeResult(data)
	if errors.Is(err, item.ErrNewer) {
		return r, fmt.Errorf("%s: %w", key, err)
	}
	if err != nil {
		return r, fmt.Errorf("%w: decode %s: %w; move the item's folder away and run its campaign again", ErrArtifact, key, err)
	}
	if r.Item.ID != id || r.Outcome != item.OutcomeDone {
		return r, fmt.Errorf("%w: %s is not the result of this item; move the item's folder away and run its campaign again", ErrArtifact, key)
	}
	return r, nil
}

// line is a line of a list of failures or scores.
type line struct {
	key    string
	number int // from 1
	text   []byte
}

// lines yields the lines of the lists FOLDER/NAME/PART.jsonl of this output, and not of one inside. A list of scores has the name of its content.
func (o Output) lines(ctx context.Context, folder string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for info, err := range o.Store.List(ctx, folder) {
			if err == nil && (strings.Count(info.Key, "/") != 2 || !strings.HasSuffix(info.Key, ".jsonl")) {
				continue
			}
			var data []byte
			if err == nil {
				data, err = o.Store.Get(ctx, info.Key)
			}
			if err != nil {
				yield(line{}, err)
				return
			}
			number := 0
			for text := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) { // an empty file has an empty line
				number++
				if !yield(line{info.Key, number, text}, nil) {
					return
				}
			}
			if folder != ScoresFolder {
				continue
			}
			if err := CheckScorePart(info.Key, data); err != nil {
				yield(line{}, fmt.Errorf("%s: %w", info.Key, err))
				return
			}
		}
	}
}

// failures yields the items that the reports of the output's campaigns list as failed or dead.
func (o Output) failures(ctx context.Context, isNew func(id string) bool, yield func(item.Result, error) bool) bool {
	for l, err := range o.lines(ctx, FailuresFolder) {
		var r item.Result
		if err == nil {
			if err = json.Unmarshal(l.text, &r); err != nil {
				err = fmt.Errorf("%w: decode line %d of %s: %w; move the file away and run its campaign again", ErrArtifact, l.number, l.key, err)
			}
		}
		if err != nil {
			yield(item.Result{}, fmt.Errorf("read %s: %w", o.Address, err))
			return false
		}
		if r.Outcome != item.OutcomeDone && isNew(r.Item.ID) && !yield(r, nil) {
			return false
		}
	}
	return true
}
