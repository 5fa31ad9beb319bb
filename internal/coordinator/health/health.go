package health

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
	"ddiff/telemetry"
)

const (
	// probeKey is the object with which coordinators check the store.
	probeKey = "coordinators/probe"
	// failedProbes is the number of consecutive failures that make the store unavailable.
	failedProbes = 2
	// beatProbes is the number of probe intervals for which the beat of another coordinator counts.
	beatProbes = 3
)

// Config describes what a coordinator watches.
type Config struct {
	// Name identifies the coordinator on the board.
	Name  string
	Board *queue.Board
	Store storage.Store
	// Probe is the interval of the checks of the store, and the time limit of one check. Tick is the unit of the intervals of
	// the other checks.
	Probe, Tick time.Duration
	// Usage returns the sizes of the queue's streams. Only Streams needs it.
	Usage  func(ctx context.Context) ([]queue.StreamUsage, error)
	Now    func() time.Time
	Logger *slog.Logger
}

// Checker knows whether this coordinator, and whether another one, can use the store.
type Checker struct {
	cfg Config
	id  string

	mu       sync.Mutex
	probed   bool      // a probe has ended
	failures int       // consecutive failed probes
	since    time.Time // begin of the first of them
	reason   string    // of the last one
	unfit    bool      // another coordinator can use the store, and this one cannot
	suspect  bool      // a write has failed: probes write until one succeeds
	leading  bool
	compared bool            // a leader has compared the board with the store in the life of this process
	peers    map[string]peer // by key on the board
}

// peer is the last beat of another coordinator.
type peer struct {
	id       string
	at       time.Time // by the peer's clock
	healthy  bool
	received time.Time // by this coordinator's clock
}

// New returns the health of a coordinator that has not used the store yet.
func New(cfg Config) *Checker {
	return &Checker{cfg: cfg, id: rand.Text(), peers: map[string]peer{}}
}

// ID identifies the process of this coordinator.
func (h *Checker) ID() string { return h.id }

// Lives reports whether the process of another coordinator writes a beat. It waits for a few probe intervals, as an earlier beat may be of a
// process that has died since.
func (h *Checker) Lives(ctx context.Context, id string) bool {
	begin := h.cfg.Now()
	for range max(1, beatProbes*h.cfg.Probe/h.cfg.Tick) {
		if retry.Sleep(ctx, h.cfg.Tick) != nil {
			return false
		}
		if h.beatAfter(id, begin) {
			return true
		}
	}
	return false
}

// beatAfter reports whether a beat of a process came after a time.
func (h *Checker) beatAfter(id string, t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.peers {
		if p.id == id && p.received.After(t) {
			return true
		}
	}
	return false
}

// Check checks the store periodically until ctx ends, and publishes the result on the board for the other coordinators.
func (h *Checker) Check(ctx context.Context) error {
	watch := lifecycle.Go(ctx, h.watchPeers)
	defer watch.Stop()
	key := record.KeyCoordinatorPrefix + queue.Token(h.cfg.Name)
	defer func() {
		// Without the beat the others need not wait until it is old.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = h.cfg.Board.Delete(ctx, key)
	}()
	for ctx.Err() == nil {
		begin := h.cfg.Now()
		err := h.probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		h.recordProbe(begin, err)
		if err := h.beat(ctx, key); err != nil && ctx.Err() == nil {
			h.cfg.Logger.Warn("could not publish the health of the coordinator", "reason", err)
		}
		if retry.Sleep(ctx, h.cfg.Probe-h.cfg.Now().Sub(begin)) != nil {
			return nil
		}
	}
	return nil
}

// Fit reports whether this coordinator may lead: it can use the store, or no other coordinator can.
func (h *Checker) Fit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.unfit
}

// Ready returns the reason why this coordinator could not lead, or its cluster cannot be used: it cannot use the store, or does not know yet, or no
// leader has compared the board with the store: it may be a backup with deleted campaigns. A coordinator that waits for another one to lead is ready.
func (h *Checker) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.probed:
		return errors.New("the store is not checked yet")
	case h.failures >= failedProbes:
		return fmt.Errorf("the store is unavailable: %s", h.reason)
	case !h.compared:
		return errors.New("no leading coordinator has compared the campaigns of the board with the store yet")
	}
	return nil
}

// Compared notes that this coordinator, as the leader, has compared the board with the store. The others learn it from its beats.
func (h *Checker) Compared() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.compared = true
}

// probe uses the store once.
func (h *Checker) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Probe)
	defer cancel()
	_, err := h.cfg.Store.Get(ctx, probeKey)
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	h.mu.Lock()
	write := h.suspect
	h.mu.Unlock()
	if err == nil && write {
		err = h.cfg.Store.Put(ctx, probeKey, []byte(h.cfg.Name+"\n"))
	}
	return err
}

// recordProbe records the result of a probe that began at the given time.
func (h *Checker) recordProbe(begin time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probed = true
	if err == nil {
		if h.failures >= failedProbes {
			h.cfg.Logger.Info("the store is available again", "after", h.cfg.Now().Sub(h.since).Round(time.Second))
		}
		h.failures, h.reason, h.unfit, h.suspect = 0, "", false, false
		return
	}
	if h.failures++; h.failures == 1 {
		h.since = begin
	}
	h.reason = err.Error()
	unfit := h.failures >= failedProbes && h.healthyPeer(h.cfg.Now(), begin, h.cfg.Probe)
	if h.failures == failedProbes || unfit != h.unfit {
		h.cfg.Logger.Warn("the store is unavailable", "since", h.since, "another_coordinator_can_use_it", unfit, "reason", h.reason)
	}
	h.unfit = unfit
}

// healthyPeer reports whether another coordinator has used the store since this one cannot. A beat that came within one
// interval of the first failure may describe the time before the failure; a beat that came after the last probe began
// may describe a store that has recovered since.
func (h *Checker) healthyPeer(now, probed time.Time, interval time.Duration) bool {
	for _, p := range h.peers {
		if p.healthy && !p.received.Before(h.since.Add(interval)) && p.received.Before(probed) && now.Sub(p.received) <= beatProbes*interval {
			return true
		}
	}
	return false
}

// beat publishes the health of this coordinator.
func (h *Checker) beat(ctx context.Context, key string) error {
	h.mu.Lock()
	b := record.CoordinatorBeat{Name: h.cfg.Name, ID: h.id, Store: h.reason, Leading: h.leading, Compared: h.compared, At: h.cfg.Now().UTC()}
	h.mu.Unlock()
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Probe)
	defer cancel()
	return h.cfg.Board.Put(ctx, key, data)
}

// watchPeers records the beats of the other coordinators until ctx ends.
func (h *Checker) watchPeers(ctx context.Context) error {
	for ctx.Err() == nil {
		for change, err := range h.cfg.Board.Watch(ctx, record.KeyCoordinatorPrefix) {
			if err != nil {
				h.cfg.Logger.Warn("could not read the health of other coordinators, will retry", "reason", err)
				break
			}
			h.record(change, h.cfg.Now())
		}
		_ = retry.Sleep(ctx, h.cfg.Probe) // the loop checks ctx
	}
	return nil
}

// record records a beat that was received at the given time.
func (h *Checker) record(change queue.Change, now time.Time) {
	if change.Ready {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var b record.CoordinatorBeat
	if change.Deleted || json.Unmarshal(change.Data, &b) != nil || b.ID == "" || b.ID == h.id {
		delete(h.peers, change.Key)
		return
	}
	if b.Compared && change.Age() < beatProbes*h.cfg.Probe { // not of a backup
		h.compared = true
	}
	if known := h.peers[change.Key]; known.id == b.ID && known.at.Equal(b.At) {
		return // a new watch repeats it
	}
	h.peers[change.Key] = peer{id: b.ID, at: b.At, healthy: b.Store == "", received: now}
}

// Suspect lets the next probes write, because an operation of a campaign has failed.
func (h *Checker) Suspect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspect = true
}

// Problem describes an outage of the store, for people; it is empty without one.
func (h *Checker) Problem() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures < failedProbes {
		return ""
	}
	return fmt.Sprintf("the store is unavailable since %s; the campaign waits: %s", h.since.UTC().Format(time.DateTime), h.reason)
}

// Guard ends the lead with queue.ErrStepDown when another coordinator can use the store and this one cannot.
func (h *Checker) Guard(ctx context.Context) error {
	leads := func(leads bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.leading = leads
	}
	leads(true)
	defer leads(false)
	for h.Fit() {
		if retry.Sleep(ctx, max(h.cfg.Probe/5, time.Millisecond)) != nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", queue.ErrStepDown, h.Problem())
}

// Standing returns what every coordinator reports in its metrics.
func (h *Checker) Standing() telemetry.Standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return telemetry.Standing{Leads: h.leading, Store: h.probed && h.failures < failedProbes}
}
