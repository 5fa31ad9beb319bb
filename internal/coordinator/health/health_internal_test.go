package health

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/storage"
)

var must = boardtest.Must

// healthAt returns the health of a coordinator whose clock is *now, with probes every ten seconds.
func healthAt(now *time.Time, log *strings.Builder) *Checker {
	return New(Config{
		Name: "a", Probe: 10 * time.Second, Now: func() time.Time { return *now }, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
}

// One failed probe is no outage; the second is, from the begin of the first, until a probe succeeds.
func TestOutageNeedsTwoProbes(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	now := time.Unix(1e9, 0)
	s := healthAt(&now, &log)
	fail := func() { s.recordProbe(now, errors.New("no route")); now = now.Add(10 * time.Second) }
	ready := func(what, want string, store bool) {
		t.Helper()
		if err := s.Ready(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if s.Standing().Store != store {
			t.Errorf("%s: the metric of the store is %t", what, !store)
		}
	}
	ready("before the first probe", "not checked yet", false)
	fail()
	ready("before a leader has compared", "has compared the campaigns", true)
	backup, _ := json.Marshal(record.CoordinatorBeat{Name: "b", ID: "b", Compared: true})
	s.record(queue.Change{Key: "coordinator.b", Data: backup, Since: time.Now().Add(-time.Hour)}, now)
	ready("with the beat of a backup", "has compared the campaigns", true)
	s.record(queue.Change{Key: "coordinator.b", Data: backup, Since: time.Now()}, now)
	delete(s.peers, "coordinator.b")
	ready("one failure", "", true)
	s.recordProbe(now, nil)
	ready("a success", "", true)
	if log.Len() > 0 {
		t.Errorf("one failure is logged: %s", log.String())
	}
	fail()
	if s.Problem() != "" {
		t.Errorf("one failure is the problem %q", s.Problem())
	}
	begin := now.Add(-10 * time.Second)
	fail()
	if want := "since " + begin.UTC().Format(time.DateTime); !strings.Contains(s.Problem(), want) || !strings.Contains(s.Problem(), "no route") {
		t.Errorf("problem %q, want %q", s.Problem(), want)
	}
	ready("an outage", "the store is unavailable: no route", false)
	fail()
	if n := strings.Count(log.String(), "the store is unavailable"); n != 1 {
		t.Errorf("the outage is logged %d times: %s", n, log.String())
	}
	s.Suspect()
	s.recordProbe(now, nil)
	if !strings.Contains(log.String(), "available again\" after=30s") || s.Problem() != "" || s.suspect || !s.Fit() {
		t.Errorf("after the outage: problem %q, log %s", s.Problem(), log.String())
	}
}

// A coordinator is unfit from its second failed probe on if another one has used the store since.
func TestUnfitWithHealthyPeer(t *testing.T) {
	t.Parallel()
	const interval = 10 * time.Second
	for _, c := range []struct {
		name     string
		failures int
		received time.Duration // after the first failure
		store    string
		want     bool
	}{
		{"first failure", 1, interval, "", false},
		{"second failure", 2, interval, "", true},
		{"a beat that may be older than the outage", 2, interval - 1, "", false},
		{"a beat after the begin of the probe", 2, 2 * interval, "", false},
		{"a beat just before the probe", 2, 2*interval - 1, "", true},
		{"a peer without the store", 2, interval, "no route", false},
		{"the oldest beat that counts", 5, 2 * interval, "", true},
		{"a beat that is too old", 5, 2*interval - 1, "", false},
	} {
		var log strings.Builder
		first := time.Unix(1e9, 0)
		now := first
		s := healthAt(&now, &log)
		for i := range c.failures {
			// The second probe begins two intervals after the first, the others follow at once.
			if now = first.Add(time.Duration(min(i, 1)) * 2 * interval); i > 1 {
				now = first.Add(5 * interval)
			}
			s.record(queue.Change{Key: "b", Data: []byte(`{"name":"b","id":"B","store":"` + c.store + `"}`)}, first.Add(c.received))
			s.recordProbe(now, errors.New("no route"))
		}
		if s.Fit() == c.want {
			t.Errorf("%s: fit %t", c.name, s.Fit())
		}
	}
}

// The own beat, a deleted one and a damaged one are no peers.
func TestPeers(t *testing.T) {
	t.Parallel()
	h := New(Config{})
	good := []byte(`{"name":"b","id":"B"}`)
	for _, c := range []struct {
		name   string
		change queue.Change
		want   int
	}{
		{"another one", queue.Change{Key: "b", Data: good}, 1},
		{"all records are read", queue.Change{Key: "b", Ready: true}, 1},
		{"removed", queue.Change{Key: "b", Deleted: true}, 0},
		{"removed with its last content", queue.Change{Key: "b", Deleted: true, Data: good}, 0},
		{"without an id", queue.Change{Key: "b", Data: []byte(`{"name":"b"}`)}, 0},
		{"damaged", queue.Change{Key: "b", Data: []byte(`{"id":"B"`)}, 0},
		{"itself", queue.Change{Key: "b", Data: []byte(`{"id":"` + h.id + `"}`)}, 0},
	} {
		if !c.change.Ready {
			h.record(queue.Change{Key: "b", Data: good}, time.Now())
		}
		h.record(c.change, time.Now())
		if len(h.peers) != c.want {
			t.Errorf("%s: %d peers, want %d", c.name, len(h.peers), c.want)
		}
	}
}

// onBoard gives a coordinator a real board and store.
func (h *Checker) onBoard(t *testing.T) *Checker {
	t.Helper()
	_, _, h.cfg.Board = boardtest.Start(t)
	store, err := storage.NewDir(t.TempDir())
	must(t, err)
	h.cfg.Store = store
	return h
}

// slowStore is a store in which a read takes a time of the test's clock.
type slowStore struct {
	storage.Store
	read func() error
}

func (s slowStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

// TestIntervalOfProbes: the interval of probes is counted from their begin, so that a slow store is not probed less often. A beat
// that cannot be published is logged.
func TestIntervalOfProbes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	h := healthAt(&now, &log).onBoard(t)
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfProbes)
	defer cancel()
	h.cfg.Probe = time.Hour
	var clock atomic.Int64 // which a goroutine of the service reads, too
	h.cfg.Now = func() time.Time { return now.Add(time.Duration(clock.Load())) }
	probes := 0
	h.cfg.Store = slowStore{h.cfg.Store, func() error {
		clock.Add(int64(time.Hour))
		if probes++; probes == 3 {
			cancel()
		}
		return errors.New(strings.Repeat("x", queue.MaxRecordBytes)) // the reason is part of the beat
	}}
	if err := h.Check(ctx); err != nil || probes != 3 {
		t.Errorf("%d probes, %v, want 3", probes, err)
	}
	if n := strings.Count(log.String(), "could not publish the health of the coordinator"); n != 2 {
		t.Errorf("%d lines about beats, want one for each but the last probe", n)
	}
}

// patienceOfProbes is far more than three probes need.
const patienceOfProbes = 20 * time.Second
