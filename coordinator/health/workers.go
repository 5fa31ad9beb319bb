package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/restore/parameter"
)

// Workers is the number of live workers, and of those that are suspended.
type Workers struct {
	mu        sync.Mutex
	n         int
	suspended []manifest.Beat            // by name
	working   map[string]string          // the campaign of the last lease of the others, by name
	refused   map[string]refusals        // by campaign
	suggested map[manifest.Precision]int // for campaigns with the precision auto
	states    map[string]int             // live workers by state, for the metrics

	seen   map[string]beatSighting // by key; only count uses it
	warned map[string]bool         // what was logged; only watch and count use it
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
func (w *Workers) Live() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// States returns the number of live workers by state.
func (w *Workers) States() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states // never changed, only replaced
}

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
	w.mu.Lock()
	defer w.mu.Unlock()
	n, reason := 0, ""
	for _, b := range w.suspended {
		if b.SuspendedCampaign == "" || b.SuspendedCampaign == campaign {
			n++
			reason = cmp.Or(reason, b.Name+": "+b.Suspended)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d workers are suspended: %s", n, w.n, reason)
}

// Works reports whether a live worker that is not suspended has leased items of a campaign last, without the workers
// that except is true for.
func (w *Workers) Works(campaign string, except func(name string) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, c := range w.working {
		if c == campaign && !except(name) {
			return true
		}
	}
	return false
}

// Refusal returns the reason if all live workers refuse a campaign, and "" otherwise.
func (w *Workers) Refusal(campaign string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.refused[campaign]
	if w.n == 0 || r.workers < w.n {
		return ""
	}
	return fmt.Sprintf("none of %d live workers can process this campaign; %s", w.n, r.reason)
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
			w.Count(ctx, cfg, beats)
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

// Count counts the live workers. It warns once about each worker that hung or has another schema.
func (w *Workers) Count(ctx context.Context, cfg Config, beats map[string]manifest.Beat) {
	suggested, states := map[manifest.Precision]int{}, map[string]int{"busy": 0, "idle": 0, "suspended": 0, "draining": 0}
	n, suspended, refused, working := 0, []manifest.Beat(nil), map[string]refusals{}, map[string]string{}
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
			n++
			states[stateOfWorker(b)]++
			if b.Auto.Fixed() {
				suggested[b.Auto]++
			}
			if b.Suspended != "" {
				suspended = append(suspended, b)
			} else {
				working[b.Name] = b.Campaign
			}
			for campaign, reason := range b.Refused {
				refused[campaign] = refusals{refused[campaign].workers + 1, fmt.Sprintf("worker %s: %s", b.Name, reason)}
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
	w.mu.Lock()
	w.n, w.suspended, w.refused, w.working, w.suggested, w.states = n, suspended, refused, working, suggested, states
	w.mu.Unlock()
}

// Suggestion returns the precision that most live workers suggest, the first of parameter.Precisions among equals: all
// workers compute in float32. It is empty without a worker.
func (w *Workers) Suggestion() manifest.Precision {
	w.mu.Lock()
	defer w.mu.Unlock()
	best := manifest.Precision("")
	for _, p := range parameter.Precisions() {
		if w.suggested[p] > w.suggested[best] {
			best = p
		}
	}
	return best
}
