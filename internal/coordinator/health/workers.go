package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// Workers knows the live workers.
type Workers struct {
	now atomic.Pointer[fleet] // nil before the first count

	ended atomic.Int64 // processes that ended without a word
	// seen has the processes of the last count by name, and replaced those of late whose name a later process has taken; only count uses them.
	seen, replaced map[string]process

	warned map[string]bool // what was logged; only watch and count use it
}

// fleet is the result of a count.
type fleet struct {
	suspended []record.Beat     // by name
	working   map[string]string // the campaign of the last lease of the others, by name
	lost      map[string]string // the campaign of the last lease of workers whose beats have ended without a word, by name
	pools     map[string]*pool  // by name
}

// process is a worker's process: a later one of the same name starts at another time.
type process struct {
	started  time.Time
	ended    bool
	campaign string    // of its last lease
	counted  time.Time // when it was counted last
}

// pool is what a count found in one pool.
type pool struct {
	live   int
	states map[string]int // live workers by state, for the metrics
	// Of the last live workers, which were counted at a time: their number, and what they refuse and compute.
	known      time.Time
	members    int
	refused    map[string]refusals // by campaign
	precisions []manifest.Precision
}

// poolMemory is the time for which a pool without workers is known to refuse what its last workers refused. Then a scaler may start
// one to ask it: the pool may have other devices.
const poolMemory = time.Hour

// in returns a pool of the fleet, which it creates.
func (f *fleet) in(name string) *pool {
	if f.pools[name] == nil {
		f.pools[name] = &pool{
			states: map[string]int{"busy": 0, "idle": 0, "suspended": 0, "draining": 0}, refused: map[string]refusals{},
		}
	}
	return f.pools[name]
}

// of returns the pools that a campaign may use: the one that it asks for, or all.
func (f *fleet) of(asked string) iter.Seq[*pool] {
	return func(yield func(*pool) bool) {
		for _, name := range slices.Sorted(maps.Keys(f.pools)) {
			if (asked == "" || asked == name) && !yield(f.pools[name]) {
				return
			}
		}
	}
}

// live returns the number of live workers of the pools that a campaign may use.
func (f *fleet) live(asked string) (n int) {
	for p := range f.of(asked) {
		n += p.live
	}
	return n
}

func (w *Workers) last() fleet {
	if f := w.now.Load(); f != nil {
		return *f
	}
	return fleet{}
}

// refusals counts the live workers that refuse a campaign.
type refusals struct {
	workers int
	reason  string // of one of them
}

const (
	beatLife = record.BeatLife
	// lostMemory is how long a worker that has ended without a word is known.
	lostMemory = 20 * beatLife
)

// Live returns the number of live workers of a pool, or of all pools if pool is empty.
func (w *Workers) Live(pool string) int { f := w.last(); return f.live(pool) }

// States returns the numbers of live workers by pool and state, also of pools that had workers of late.
func (w *Workers) States() map[string]map[string]int {
	states := map[string]map[string]int{}
	for name, p := range w.last().pools {
		states[name] = p.states
	}
	return states
}

// Takes reports whether the workers of a pool can process a campaign with a precision (empty: any), as far as this process knows:
// a worker states what it refuses, and a pool without workers is like its last ones.
func (w *Workers) Takes(pool, campaign string, needs manifest.Precision) bool {
	p := w.last().pools[pool]
	if p == nil || p.members == 0 {
		return true
	}
	computes := needs == "" || len(p.precisions) == 0 || slices.Contains(p.precisions, needs)
	return computes && p.refused[campaign].workers < p.members
}

// stateOfWorker returns the state of a live worker in the metrics.
func stateOfWorker(b record.Beat) string {
	switch {
	case b.Draining:
		return "draining"
	case b.Suspended != "":
		return "suspended"
	case b.Held > 0:
		return "busy"
	}
	return "idle"
}

// Problem describes the suspended workers of a campaign; "" without any.
func (w *Workers) Problem(campaign string) string {
	f, n, reason := w.last(), 0, ""
	for _, b := range f.suspended {
		if b.SuspendedCampaign == "" || b.SuspendedCampaign == campaign {
			n++
			reason = cmp.Or(reason, b.Name+": "+b.Suspended)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d workers are suspended: %s", n, f.live(""), reason)
}

// Works reports whether a live worker that is not suspended has leased items of a campaign last, without the workers
// that except is true for.
func (w *Workers) Works(campaign string, except func(name string) bool) bool {
	for name, c := range w.last().working {
		if c == campaign && !except(name) {
			return true
		}
	}
	return false
}

// Lost returns the names of workers that have ended without a word, of late: those that had leased items of a campaign last, and, as a
// worker may end before its next beat, all.
func (w *Workers) Lost(campaign string) (names, all []string) {
	lost := w.last().lost
	all = slices.Sorted(maps.Keys(lost))
	for _, name := range all {
		if lost[name] == campaign {
			names = append(names, name)
		}
	}
	return names, all
}

// Ended returns the number of workers that this process has seen end without a word. A worker that starts anew under its name counts,
// unless a count found that its record was deleted.
func (w *Workers) Ended() int { return int(w.ended.Load()) }

// countEnds counts the processes that have ended since the last count. Two workers of one name have not: they write their record in turn.
func (w *Workers) countEnds(cfg Config, beats map[string]record.Beat) {
	at := cfg.Now()
	maps.DeleteFunc(w.replaced, func(_ string, p process) bool { return at.Sub(p.counted) > lostMemory })
	seen := make(map[string]process, len(beats))
	for _, b := range beats {
		now := process{b.Started, b.Silent(), b.Campaign, at}
		before, known := w.seen[b.Name]
		same := before.started.Equal(now.started)
		replaces := known && !same && !before.ended
		if earlier, again := w.replaced[b.Name]; again && replaces && !now.ended && earlier.started.Equal(now.started) {
			w.replaced[b.Name] = now // it had not ended
			if w.warn(b.Name + " twice") {
				cfg.Logger.Warn("two workers have one name; start each with a --name of its own", "worker", b.Name)
			}
			seen[b.Name] = before
			continue
		}
		if replaces {
			w.ended.Add(1)
			if w.replaced == nil {
				w.replaced = map[string]process{}
			}
			w.replaced[b.Name] = before
		}
		if now.ended && (!same || !before.ended) {
			w.ended.Add(1)
		}
		seen[b.Name] = now
	}
	w.seen = seen
}

// Refusal returns the reason if the pool that a campaign asks for has no live worker, or all live workers that it may use refuse it,
// and "" otherwise.
func (w *Workers) Refusal(campaign, asked string) string {
	f, refused, reason := w.last(), 0, ""
	live := f.live(asked)
	if live == 0 && asked != "" {
		return fmt.Sprintf("waiting for a worker of pool %s; the %d live workers are of other pools", asked, f.live(""))
	}
	for p := range f.of(asked) {
		if p.live > 0 {
			refused += p.refused[campaign].workers
			reason = cmp.Or(reason, p.refused[campaign].reason)
		}
	}
	if live == 0 || refused < live {
		return ""
	}
	return fmt.Sprintf("none of %d live workers can process this campaign; %s", live, reason)
}

// Watch counts the workers periodically until ctx ends, and removes stale beats.
func (w *Workers) Watch(ctx context.Context, cfg Config) error {
	w.warned = nil
	tick := time.NewTicker(5 * cfg.Tick)
	defer tick.Stop()
	for {
		beats, skipped, err := board.Workers(ctx, cfg.Board)
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("could not count workers", "reason", err)
		}
		if errors.Is(err, board.ErrFlooded) {
			n, err := board.Discard(ctx, cfg.Board)
			cfg.Logger.Warn("removed the records of workers", "records", n, "error", err)
		}
		for _, err := range skipped {
			if w.warn(err.Error()) {
				cfg.Logger.Warn("skipped a worker's record", "reason", err)
			}
		}
		if err == nil {
			w.count(ctx, cfg, beats)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// warn reports whether a text is new.
func (w *Workers) warn(text string) bool {
	if w.warned == nil {
		w.warned = map[string]bool{}
	}
	before := w.warned[text]
	w.warned[text] = true
	return !before
}

// count counts the live workers. It warns once about each worker that hung or has another schema.
func (w *Workers) count(ctx context.Context, cfg Config, beats map[string]record.Beat) {
	w.countEnds(cfg, beats)
	f := &fleet{working: map[string]string{}, lost: map[string]string{}, pools: map[string]*pool{}}
	var errs error
	for _, key := range slices.Sorted(maps.Keys(beats)) {
		b := beats[key]
		age := time.Duration(b.Age * float64(time.Second))
		switch {
		case b.Hung != "" && age < beatLife: // the worker ends
			if w.warn(b.Name + ": " + b.Hung) {
				cfg.Logger.Warn("worker hung", "worker", b.Name, "reason", b.Hung)
			}
		case age < beatLife:
			f.in(cmp.Or(b.Pool, manifest.DefaultPool)).add(b, cfg.Now())
			if b.Suspended != "" {
				f.suspended = append(f.suspended, b)
			} else {
				f.working[b.Name] = b.Campaign
			}
		case age <= lostMemory:
			f.lost[b.Name] = b.Campaign
		default:
			errs = errors.Join(errs, cfg.Board.Delete(ctx, key))
		}
		if b.Schema != record.Schema && w.warn(b.Name) {
			cfg.Logger.Warn("worker has another version; use one version of ddiff everywhere",
				"worker", b.Name, "version", b.Version, "schema", b.Schema, "expected", record.Schema)
		}
	}
	if errs != nil && ctx.Err() == nil {
		cfg.Logger.Warn("could not remove stale workers", "reason", errs)
	}
	for name, p := range w.replaced {
		if _, known := f.lost[name]; !known {
			f.lost[name] = p.campaign
		}
	}
	for name, p := range w.last().pools {
		if f.pools[name] == nil && cfg.Now().Sub(p.known) < poolMemory {
			f.in(name).keep(p)
		}
	}
	w.now.Store(f)
}

// add counts a live worker.
func (p *pool) add(b record.Beat, now time.Time) {
	p.live++
	p.members, p.known = p.live, now
	p.states[stateOfWorker(b)]++
	p.precisions = append(p.precisions, b.Precisions...)
	for campaign, reason := range b.Refused {
		p.refused[campaign] = refusals{p.refused[campaign].workers + 1, fmt.Sprintf("worker %s: %s", b.Name, reason)}
	}
}

// keep takes over what an earlier count knew of the pool.
func (p *pool) keep(last *pool) {
	p.known, p.members, p.refused, p.precisions = last.known, last.members, last.refused, last.precisions
}
