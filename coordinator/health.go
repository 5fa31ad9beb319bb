package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"ddiff/internal/lifecycle"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

const (
	// probeKey is the object with which coordinators check the store.
	probeKey = "coordinators/probe"
	// failedProbes is the number of consecutive failures that make the store unavailable.
	failedProbes = 2
	// beatProbes is the number of probe intervals for which the beat of another coordinator counts.
	beatProbes = 3
)

// health knows whether this coordinator, and whether another one, can use the store.
type health struct {
	id string

	mu       sync.Mutex
	probed   bool      // a probe has ended
	failures int       // consecutive failed probes
	since    time.Time // begin of the first of them
	reason   string    // of the last one
	unfit    bool      // another coordinator can use the store, and this one cannot
	suspect  bool      // a write has failed: probes write until one succeeds
	leading  bool
	peers    map[string]peer // by key on the board
}

// peer is the last beat of another coordinator.
type peer struct {
	name     string
	healthy  bool
	received time.Time // by this coordinator's clock
}

func newHealth() *health { return &health{id: rand.Text(), peers: map[string]peer{}} }

// CheckHealth checks the store periodically until ctx ends, and publishes the result on the board for the other
// coordinators. It runs in every coordinator, whether it leads or not, beside the election.
func (s *Service) CheckHealth(ctx context.Context) error {
	stop, err := s.cfg.Metrics.ObserveStanding(s.standing)
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // the registration is known
	watch := lifecycle.Go(ctx, s.watchPeers)
	defer watch.Stop()
	key := manifest.KeyCoordinatorPrefix + queue.Token(s.cfg.Name)
	defer func() {
		// Without the beat the others need not wait until it is old.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.cfg.Board.Delete(ctx, key)
	}()
	for ctx.Err() == nil {
		begin := s.cfg.Now()
		err := s.probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.recordProbe(begin, err)
		if err := s.beat(ctx, key); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("could not publish the health of the coordinator", "reason", err)
		}
		if retry.Sleep(ctx, s.cfg.Probe-s.cfg.Now().Sub(begin)) != nil {
			return nil
		}
	}
	return nil
}

// Fit reports whether this coordinator may lead: it can use the store, or no other coordinator can.
func (s *Service) Fit() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return !s.health.unfit
}

// Ready returns the reason why this coordinator could not lead: it cannot use the store, or does not know yet. A coordinator
// that waits for another one to lead is ready.
func (s *Service) Ready() error {
	h := s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.probed:
		return errors.New("the store is not checked yet")
	case h.failures >= failedProbes:
		return fmt.Errorf("the store is unavailable: %s", h.reason)
	}
	return nil
}

// probe uses the store once.
func (s *Service) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Probe)
	defer cancel()
	_, err := s.cfg.Store.Get(ctx, probeKey)
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	s.health.mu.Lock()
	write := s.health.suspect
	s.health.mu.Unlock()
	if err == nil && write {
		err = s.cfg.Store.Put(ctx, probeKey, []byte(s.cfg.Name+"\n"))
	}
	return err
}

// recordProbe records the result of a probe that began at the given time.
func (s *Service) recordProbe(begin time.Time, err error) {
	h := s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probed = true
	if err == nil {
		if h.failures >= failedProbes {
			s.cfg.Logger.Info("the store is available again", "after", s.cfg.Now().Sub(h.since).Round(time.Second))
		}
		h.failures, h.reason, h.unfit, h.suspect = 0, "", false, false
		return
	}
	if h.failures++; h.failures == 1 {
		h.since = begin
	}
	h.reason = err.Error()
	unfit := h.failures >= failedProbes && h.healthyPeer(s.cfg.Now(), begin, s.cfg.Probe)
	if h.failures == failedProbes || unfit != h.unfit {
		s.cfg.Logger.Warn("the store is unavailable", "since", h.since, "another_coordinator_can_use_it", unfit, "reason", h.reason)
	}
	h.unfit = unfit
}

// healthyPeer reports whether another coordinator has used the store since this one cannot. A beat that came within one
// interval of the first failure may describe the time before the failure; a beat that came after the last probe began
// may describe a store that has recovered since.
func (h *health) healthyPeer(now, probed time.Time, interval time.Duration) bool {
	for _, p := range h.peers {
		if p.healthy && !p.received.Before(h.since.Add(interval)) && p.received.Before(probed) && now.Sub(p.received) <= beatProbes*interval {
			return true
		}
	}
	return false
}

// beat publishes the health of this coordinator.
func (s *Service) beat(ctx context.Context, key string) error {
	h := s.health
	h.mu.Lock()
	b := manifest.CoordinatorBeat{Name: s.cfg.Name, ID: h.id, Store: h.reason, Leading: h.leading, At: s.cfg.Now().UTC()}
	h.mu.Unlock()
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Probe)
	defer cancel()
	return s.cfg.Board.Put(ctx, key, data)
}

// watchPeers records the beats of the other coordinators until ctx ends.
func (s *Service) watchPeers(ctx context.Context) error {
	for ctx.Err() == nil {
		for change, err := range s.cfg.Board.Watch(ctx, manifest.KeyCoordinatorPrefix) {
			if err != nil {
				s.cfg.Logger.Warn("could not read the health of other coordinators, will retry", "reason", err)
				break
			}
			s.health.record(change, s.cfg.Now())
		}
		_ = retry.Sleep(ctx, s.cfg.Probe) // the loop checks ctx
	}
	return nil
}

// record records a beat that was received at the given time.
func (h *health) record(change queue.Change, now time.Time) {
	if change.Ready {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var b manifest.CoordinatorBeat
	if change.Deleted || json.Unmarshal(change.Data, &b) != nil || b.ID == "" || b.ID == h.id {
		delete(h.peers, change.Key)
		return
	}
	h.peers[change.Key] = peer{name: b.Name, healthy: b.Store == "", received: now}
}

// suspectStore lets the next probes write, because an operation of a campaign has failed.
func (h *health) suspectStore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspect = true
}

// setLeading records whether this coordinator leads.
func (h *health) setLeading(leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leading = leads
}

// problem describes an outage of the store, for people; it is empty without one.
func (h *health) problem() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures < failedProbes {
		return ""
	}
	return fmt.Sprintf("the store is unavailable since %s; the campaign waits: %s", h.since.UTC().Format(time.DateTime), h.reason)
}

// guard ends the lead with queue.ErrStepDown when another coordinator can use the store and this one cannot. During an
// outage of the store it adds the outage to the status of the active campaigns, whose runners may wait for the store.
func (s *Service) guard(ctx context.Context, all *runners) error {
	s.health.setLeading(true)
	defer s.health.setLeading(false)
	tick := time.NewTicker(max(s.cfg.Probe/5, time.Millisecond))
	defer tick.Stop()
	reported := map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !s.Fit() {
			return fmt.Errorf("%w: %s", queue.ErrStepDown, s.health.problem())
		}
		problem := s.health.problem()
		if problem == "" {
			clear(reported)
			continue
		}
		for _, id := range all.ids() {
			if s.cfg.Now().Sub(reported[id]) < statusInterval {
				continue
			}
			if err := s.reportProblem(ctx, id, problem); err != nil {
				s.cfg.Logger.Warn("could not report the outage of the store", "campaign", id, "reason", err)
				break
			}
			reported[id] = s.cfg.Now()
		}
	}
}

// reportProblem adds a problem to the status of a campaign, unless the status changes meanwhile.
func (s *Service) reportProblem(ctx context.Context, id, problem string) error {
	key := manifest.KeyStatusPrefix + id
	data, revision, err := s.cfg.Board.Get(ctx, key)
	if errors.Is(err, queue.ErrNoRecord) {
		data, err = json.Marshal(manifest.Status{ID: id, Phase: manifest.PhaseQueued, Problem: problem, At: s.cfg.Now().UTC()})
		if err == nil {
			_, err = s.cfg.Board.Create(ctx, key, data)
		}
		return err
	}
	if err != nil {
		return err
	}
	var status manifest.Status
	if err := json.Unmarshal(data, &status); err != nil {
		return fmt.Errorf("read status of campaign %s: %w", id, err)
	}
	status.Problem, status.At = problem, s.cfg.Now().UTC()
	if data, err = json.Marshal(status); err != nil {
		return err
	}
	_, err = s.cfg.Board.Update(ctx, key, data, revision)
	if errors.Is(err, queue.ErrConflict) {
		return nil // a runner has just written it
	}
	return err
}
