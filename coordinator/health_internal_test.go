package coordinator

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/queue"
)

// healthAt returns a service whose clock is *now, with probes every ten seconds.
func healthAt(now *time.Time, log *strings.Builder) *Service {
	return &Service{health: newHealth(), cfg: Config{
		Name: "a", Probe: 10 * time.Second, Now: func() time.Time { return *now }, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}}
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
		if s.standing().Store != store {
			t.Errorf("%s: the metric of the store is %t", what, !store)
		}
	}
	ready("before the first probe", "not checked yet", false)
	fail()
	ready("one failure", "", true)
	s.recordProbe(now, nil)
	ready("a success", "", true)
	if log.Len() > 0 {
		t.Errorf("one failure is logged: %s", log.String())
	}
	fail()
	if s.health.problem() != "" {
		t.Errorf("one failure is the problem %q", s.health.problem())
	}
	begin := now.Add(-10 * time.Second)
	fail()
	if want := "since " + begin.UTC().Format(time.DateTime); !strings.Contains(s.health.problem(), want) || !strings.Contains(s.health.problem(), "no route") {
		t.Errorf("problem %q, want %q", s.health.problem(), want)
	}
	ready("an outage", "the store is unavailable: no route", false)
	fail()
	if n := strings.Count(log.String(), "the store is unavailable"); n != 1 {
		t.Errorf("the outage is logged %d times: %s", n, log.String())
	}
	s.health.suspectStore()
	s.recordProbe(now, nil)
	if !strings.Contains(log.String(), "available again\" after=30s") || s.health.problem() != "" || s.health.suspect || !s.Fit() {
		t.Errorf("after the outage: problem %q, log %s", s.health.problem(), log.String())
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
			s.health.record(queue.Change{Key: "b", Data: []byte(`{"name":"b","id":"B","store":"` + c.store + `"}`)}, first.Add(c.received))
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
	h := newHealth()
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
