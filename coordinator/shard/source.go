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

// readRows probes the rows of a window. An unreadable file is the error of its row, with one exception: an error of the
// environment (see IsUnavailable) is the error of a row only if several more attempts fail while the row's source answers
// for another row, the witness, before and after each. Otherwise readRows calls wait and reads the row again.
func (s *Sharder) readRows(ctx context.Context, rows []manifest.Row, wait Wait) ([]manifest.Probe, error) {
	r := &rowReader{Sharder: s, rows: rows, probes: make([]manifest.Probe, len(rows)), wait: wait}
	var todo []int
	for i := range rows {
		if rows[i].Err == nil && !s.hinted(&rows[i], &r.probes[i]) {
			todo = append(todo, i)
		}
	}
	unread, err := r.read(ctx, todo, true)
	for err == nil && len(unread) > 0 {
		// One source at a time: each has its own trouble.
		source := slices.Min(slices.Collect(maps.Keys(unread)))
		list := unread[source]
		delete(unread, source)
		err = r.readAgain(ctx, source, list)
	}
	return r.probes, err
}

// rowReader reads the files of the rows of a window.
type rowReader struct {
	*Sharder
	rows   []manifest.Row
	probes []manifest.Probe
	wait   Wait
}

// unreadRow is a row that could not be read because of the environment.
type unreadRow struct {
	row int
	err error
}

// readAgain reads rows of one source until each is read or has failed. A row with files of several sources may move to
// the trouble of another source, which readAgain treats in the same way.
func (r *rowReader) readAgain(ctx context.Context, source string, unread []unreadRow) error {
	delays := retry.NewBackOff(r.cfg.Delay, 8*r.cfg.Delay)
	confirmed := 0
	for attempt := uint64(0); ; attempt++ {
		answers := r.checkWitness(ctx, source) == nil
		if !answers && attempt > 0 {
			if err := r.wait(ctx, unread[0].err); err != nil {
				return err
			}
		}
		todo := make([]int, len(unread))
		for i, u := range unread {
			todo[i] = u.row
		}
		// In another order each time: the first rows may be refused, and any row that can be read is a witness.
		random := rand.New(rand.NewPCG(attempt, 0))
		random.Shuffle(len(todo), func(i, k int) { todo[i], todo[k] = todo[k], todo[i] })
		still, err := r.read(ctx, todo, !answers)
		if err != nil {
			return err
		}
		for other, list := range still {
			if other == source {
				continue
			}
			if err := r.readAgain(ctx, other, list); err != nil {
				return err
			}
		}
		unread = still[source]
		switch {
		case len(unread) == 0:
			return nil
		case !answers || r.checkWitness(ctx, source) != nil:
			confirmed = 0
			continue
		case len(unread) < len(todo):
			confirmed = 0
		default:
			confirmed++
		}
		if unread = r.failConfirmed(unread, confirmed); len(unread) == 0 {
			return nil
		}
		if err := retry.Sleep(ctx, delays.NextBackOff()); err != nil {
			return err
		}
	}
}

// failConfirmed sets the errors of the rows that have failed after so many rounds, and returns the others.
func (r *rowReader) failConfirmed(unread []unreadRow, rounds int) (rest []unreadRow) {
	for _, u := range unread {
		if rounds >= unavailableRounds || rounds >= deniedRounds && errors.Is(u.err, storage.ErrAccess) {
			r.rows[u.row].Err = u.err
		} else {
			rest = append(rest, u)
		}
	}
	return rest
}

// read probes the rows in todo. It returns the rows that could not be read because of the environment, by source, and
// sets the error of every other unreadable row. With stop it leaves the rest of a source that fails for too many rows in
// succession, instead of waiting for the timeouts of each.
func (r *rowReader) read(ctx context.Context, todo []int, stop bool) (map[string][]unreadRow, error) {
	var mu sync.Mutex
	unread := map[string][]unreadRow{}
	failures := map[string]int{} // in succession
	down := func(source string) error {
		mu.Lock()
		defer mu.Unlock()
		if list := unread[source]; stop && failures[source] >= r.cfg.Parallel {
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
				r.rows[i].Err = err
				failures[source] = 0
				return nil
			}
			unread[source] = append(unread[source], unreadRow{i, err})
			failures[source]++
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return unread, ctx.Err()
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

// sourceOf returns the part of an address that its availability and its keys depend on: the endpoint of a bucket, all web
// servers, or this machine's files. Buckets of one endpoint share the keys of the process.
func sourceOf(address string) string {
	address = strings.TrimPrefix(strings.TrimPrefix(address, "tar+"), "parquet+")
	address, _, _ = strings.Cut(address, "#")
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme == "" || u.Scheme == "file":
		return "files"
	case u.Scheme == "s3":
		return "s3 " + u.Query().Get("endpoint")
	}
	return "web"
}
