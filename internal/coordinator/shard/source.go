package shard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/storage"
)

// Wait is called when a source does not answer, or the dataset has changed so that reading cannot resume. It waits before
// the next attempt, or returns an error that ends the windows.
type Wait func(ctx context.Context, cause error) error

// fail is a Wait that does not wait.
func fail(_ context.Context, cause error) error { return cause }

// A row that its source refuses, or that is unavailable, has failed after so many rounds in which no row of the source
// could be read, while the source answered for another row before and after each. An overloaded source answers at random,
// so that there are more rounds.
const (
	deniedRounds      = 2
	unavailableRounds = 5
)

// readRows probes the rows of a window. An unreadable file is the error of its row, with two exceptions. An error of the
// environment (see IsUnavailable) is the error of a row only if several more attempts fail while the row's source answers
// for another row, the witness, before and after each. Otherwise readRows calls wait and reads the row again. Any other error of a
// server counts from its second time on: one wrong answer fails no row.
func (s *Sharder) readRows(ctx context.Context, rows []manifest.Row, wait Wait) ([]manifest.Probe, error) {
	r := &rowReader{Sharder: s, rows: rows, probes: make([]manifest.Probe, len(rows)), sources: map[string]*sourceState{}, doubted: map[int]bool{}}
	if err := s.settle(ctx, rows); err != nil {
		return nil, err
	}
	var todo []int
	for i := range rows {
		if rows[i].Err == nil && !s.hinted(&rows[i], &r.probes[i]) {
			todo = append(todo, i)
		}
	}
	delays := retry.NewBackOff(s.cfg.Delay, 8*s.cfg.Delay)
	random := rand.New(rand.NewPCG(0, 0))
	for {
		unread, doubted, err := r.read(ctx, todo)
		if err == nil && len(doubted) > 0 {
			err = retry.Sleep(ctx, 2*s.cfg.Delay) // between two looks at the same file of a server
		}
		if err != nil || len(unread)+len(doubted) == 0 {
			return r.probes, err
		}
		maps.DeleteFunc(r.sources, func(source string, _ *sourceState) bool { return unread[source] == nil })
		todo = doubted
		waited := len(doubted) > 0
		for _, source := range slices.Sorted(maps.Keys(unread)) {
			rest, cause := r.examine(ctx, source, unread[source])
			todo = append(todo, rest...)
			if cause != nil {
				if err := wait(ctx, cause); err != nil {
					return nil, err
				}
				waited = true
			}
		}
		if !waited && len(todo) > 0 {
			if err := retry.Sleep(ctx, delays.NextBackOff()); err != nil {
				return nil, err
			}
		}
		// In another order each time: the first rows may be refused, and any row that can be read is a witness.
		random.Shuffle(len(todo), func(i, k int) { todo[i], todo[k] = todo[k], todo[i] })
	}
}

// rowReader reads the files of the rows of a window.
type rowReader struct {
	*Sharder
	rows    []manifest.Row
	probes  []manifest.Probe
	sources map[string]*sourceState // those with unread rows
	doubted map[int]bool            // rows of which a server has said once that they cannot be restored
}

// sourceState is the state of a source with unread rows.
type sourceState struct {
	unread  int  // rows that could not be read last
	answers bool // for the witness
	rounds  int  // in which no row could be read, while the source answered before and after
}

// unreadRow is a row that could not be read because of the environment.
type unreadRow struct {
	row int
	err error
}

// examine sets the errors of the unread rows of a source that have failed, and returns the others. cause is the reason to wait for a
// source that does not answer again.
func (r *rowReader) examine(ctx context.Context, source string, unread []unreadRow) (rest []int, cause error) {
	state := r.sources[source]
	if state == nil {
		state = &sourceState{}
		r.sources[source] = state
	}
	before := *state
	state.answers = r.checkWitness(ctx, source) == nil
	if state.rounds++; !before.answers || !state.answers || len(unread) != before.unread {
		state.rounds = 0
	}
	for _, u := range unread {
		if state.rounds >= unavailableRounds || state.rounds >= deniedRounds && errors.Is(u.err, storage.ErrAccess) {
			r.rows[u.row].Err = u.err
		} else {
			rest = append(rest, u.row)
		}
	}
	if state.unread = len(rest); !state.answers && before.unread > 0 {
		cause = unread[0].err
	}
	return rest, cause
}

// read probes the rows in todo. It returns the rows that could not be read because of the environment, by source, and those to look at
// again. It sets the error of every other unreadable row. It leaves the rest of a source that fails for too many rows in succession and
// does not answer for its witness, instead of waiting for the timeouts of each.
func (r *rowReader) read(ctx context.Context, todo []int) (unread map[string][]unreadRow, again []int, err error) {
	var mu sync.Mutex
	unread = map[string][]unreadRow{}
	failures := map[string]int{} // in succession
	down := func(source string) error {
		mu.Lock()
		defer mu.Unlock()
		state := r.sources[source]
		if list := unread[source]; (state == nil || !state.answers) && failures[source] >= r.cfg.Parallel {
			return list[0].err
		}
		return nil
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(r.cfg.Parallel)
	for _, i := range todo {
		group.Go(func() error {
			path := cmp.Or(r.rows[i].Image, r.rows[i].Measurement)
			err := down(sourceOf(path))
			if err == nil {
				r.probes[i], path, err = r.probe(inner, r.rows[i])
			}
			if inner.Err() != nil {
				return inner.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			source := sourceOf(path)
			if !IsUnavailable(err) {
				failures[source] = 0
				if err != nil && source != localFiles && !r.doubted[i] {
					r.doubted[i], again = true, append(again, i)
				} else {
					r.rows[i].Err = err
				}
				return nil
			}
			unread[source] = append(unread[source], unreadRow{i, err})
			failures[source]++
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	return unread, again, ctx.Err()
}

// witnesses has the last file of each source that could be read.
type witnesses struct {
	mu    sync.Mutex
	paths map[string]string
}

func (w *witnesses) set(path string) {
	source := sourceOf(path)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths[source] = path
}

func (w *witnesses) of(source string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paths[source]
}

// errNoWitness: no file of a source could be read so far.
var errNoWitness = errors.New("no file of the source could be read")

// checkWitness reads the witness of a source. It returns an error if the source does not answer for it, or has none.
func (s *Sharder) checkWitness(ctx context.Context, source string) error {
	path := s.witness.of(source)
	if path == "" {
		return errNoWitness
	}
	if _, err := s.cfg.Sources.Get(ctx, path); IsUnavailable(err) {
		return err
	}
	return ctx.Err() // a missing file is an answer too
}

// localFiles is the source of this machine's files.
const localFiles = "files"

// sourceOf returns the part of an address that its availability and its keys depend on: the endpoint of a bucket, all web
// servers, or this machine's files. Buckets of one endpoint share the keys of the process.
func sourceOf(address string) string {
	address = strings.TrimPrefix(strings.TrimPrefix(address, "tar+"), "parquet+")
	address, _, _ = strings.Cut(address, "#")
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme == "" || u.Scheme == "file":
		return localFiles
	case u.Scheme == "s3":
		return "s3 " + u.Query().Get("endpoint")
	}
	return "web"
}
