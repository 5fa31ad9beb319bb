package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/restore/parameter"
)

// Workers knows the live workers.
type Workers struct {
	now atomic.Pointer[fleet] // nil before the first count

	seen   map[string]beatSighting // by key; only count uses it
	warned map[string]bool         // what was logged; only watch and count use it
}

// fleet is the result of a count.
type fleet struct {
	live      int
	suspended []manifest.Beat            // by name
	working   map[string]string          // the campaign of the last lease of the others, by name
	refused   map[string]refusals        // by campaign
	suggested map[manifest.Precision]int // for campaigns with the precision auto
	states    map[string]int             // live workers by state, for the metrics
}

func (w *Workers) last() fleet {
	if f := w.now.Load(); f != nil {
		return *f
	}
	return fleet{}
}

// beatSighting is the last change of a beat. No two clocks are compared: the clock of a worker may be wrong.
type beatSighting struct {
	at    time.Time // in the beat
	since time.Time // by the clock of this process
}

// refusals counts the live workers that refuse a campaign.
type refusals struct {
	workers int
	reason  string // of one of them
}

// beatLife is how long a worker counts as live after its last beat.
const beatLife = 30 * time.Second

// Live returns the number of live workers.
func (w *Workers) Live() int { return w.last().live }

// States returns the number of live workers by state.
func (w *Workers) States() map[string]int { return w.last().states }

// stateOfWorker returns the state of a live worker in the metrics.
func stateOfWorker(b manifest.Beat) string {
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
	return fmt.Sprintf("%d of %d workers are suspended: %s", n, f.live, reason)
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

// Refusal returns the reason if all live workers refuse a campaign, and "" otherwise.
func (w *Workers) Refusal(campaign string) string {
	f := w.last()
	r := f.refused[campaign]
	if f.live == 0 || r.workers < f.live {
		return ""
	}
	return fmt.Sprintf("none of %d live workers can process this campaign; %s", f.live, r.reason)
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

// age is the time since a beat changed. The first sighting of a beat counts as its change if the beat is young by this
// clock, or in the future.
func (w *Workers) age(key string, b manifest.Beat, now time.Time) time.Duration {
	s, known := w.seen[key]
	switch {
	case !known:
		s = beatSighting{b.At, now.Add(-min(max(now.Sub(b.At), 0), beatLife))}
	case !s.at.Equal(b.At):
		s = beatSighting{b.At, now}
	}
	w.seen[key] = s
	return now.Sub(s.since)
}

// count counts the live workers. It warns once about each worker that hung or has another schema.
func (w *Workers) count(ctx context.Context, cfg Config, beats map[string]manifest.Beat) {
	f := &fleet{
		working: map[string]string{}, refused: map[string]refusals{}, suggested: map[manifest.Precision]int{},
		states: map[string]int{"busy": 0, "idle": 0, "suspended": 0, "draining": 0},
	}
	if w.seen == nil {
		w.seen = map[string]beatSighting{}
	}
	maps.DeleteFunc(w.seen, func(key string, _ beatSighting) bool { _, there := beats[key]; return !there })
	var errs error
	for _, key := range slices.Sorted(maps.Keys(beats)) {
		b := beats[key]
		age := w.age(key, b, cfg.Now())
		switch {
		case b.Hung != "" && age < beatLife: // the worker ends
			if w.warn(b.Name + ": " + b.Hung) {
				cfg.Logger.Warn("worker hung", "worker", b.Name, "reason", b.Hung)
			}
		case age < beatLife:
			f.live++
			f.states[stateOfWorker(b)]++
			if b.Auto.Fixed() {
				f.suggested[b.Auto]++
			}
			if b.Suspended != "" {
				f.suspended = append(f.suspended, b)
			} else {
				f.working[b.Name] = b.Campaign
			}
			for campaign, reason := range b.Refused {
				f.refused[campaign] = refusals{f.refused[campaign].workers + 1, fmt.Sprintf("worker %s: %s", b.Name, reason)}
			}
		case age > 20*beatLife:
			errs = errors.Join(errs, cfg.Board.Delete(ctx, key))
		}
		if b.Schema != manifest.RecordSchema && w.warn(b.Name) {
			cfg.Logger.Warn("worker has another version; use one version of ddiff everywhere",
				"worker", b.Name, "version", b.Version, "schema", b.Schema, "expected", manifest.RecordSchema)
		}
	}
	if errs != nil && ctx.Err() == nil {
		cfg.Logger.Warn("could not remove stale workers", "reason", errs)
	}
	w.now.Store(f)
}

// Suggestion returns the precision that most live workers suggest, the first of parameter.Precisions among equals: all
// workers compute in float32. It is empty without a worker.
func (w *Workers) Suggestion() manifest.Precision {
	suggested, best := w.last().suggested, manifest.Precision("")
	for _, p := range parameter.Precisions() {
		if suggested[p] > suggested[best] {
			best = p
		}
	}
	return best
}
