package coordinator

import (
	"sync"
	"testing"
	"time"

	"ddiff/manifest"
)

// TestLag: the lag has the items of campaigns that run, and one for a campaign that waits for a worker. It is 0 without work, and no
// figure of an ended campaign remains.
func TestLag(t *testing.T) {
	t.Parallel()
	var g gauges
	now := time.Unix(1e9, 0)
	want := func(lag, campaigns int) {
		t.Helper()
		if s := g.state(now); s.Lag != lag || len(s.Campaigns) != campaigns {
			t.Errorf("lag %d, %d campaigns, want %d and %d", s.Lag, len(s.Campaigns), lag, campaigns)
		}
	}
	want(0, 0)
	g.set("b", campaignGauges{phase: manifest.PhaseRunning, pending: 5, inFlight: 2, progress: now.Add(-time.Minute), counts: manifest.Counts{Pending: 5, Running: 2, Done: 3}})
	g.set("a", campaignGauges{phase: manifest.PhasePaused, paused: true, pending: 100, progress: now.Add(-time.Hour)})
	want(7, 2)
	g.set("c", campaignGauges{phase: manifest.PhaseQueued, waits: true})
	want(8, 3)
	g.set("c", campaignGauges{phase: manifest.PhaseQueued, waits: true, paused: true})
	want(7, 3)
	s := g.state(now)
	if b := s.Campaigns[1]; b.ID != "b" || b.Pending != 5 || b.InFlight != 2 || b.Idle != time.Minute || b.Items["done"] != 3 || b.Items["running"] != 2 {
		t.Errorf("campaign %+v", b)
	}
	if idle := s.Campaigns[0].Idle; idle != 0 {
		t.Errorf("a paused campaign is idle for %v", idle)
	}
	if s.Phases["running"] != 1 || s.Phases["paused"] != 1 || s.Phases["canary"] != 0 {
		t.Errorf("phases %v", s.Phases)
	}
	if idle := g.state(now.Add(-time.Hour)).Campaigns[1].Idle; idle != 0 {
		t.Errorf("idle for %v after the clock was set back", idle)
	}
	for _, id := range []string{"a", "b", "c", "unknown"} {
		g.remove(id)
	}
	want(0, 0)
}

// TestOpeningCampaign: until its queue and ledger are read, a campaign that runs counts as one item, so that a scaler removes no
// worker, and has no series with zeros.
func TestOpeningCampaign(t *testing.T) {
	t.Parallel()
	for phase, lag := range map[manifest.Phase]int{
		manifest.PhaseQueued: 0, manifest.PhasePreflight: 1, manifest.PhaseCanary: 1, manifest.PhaseRunning: 1, manifest.PhasePaused: 0, manifest.PhaseFinished: 0,
	} {
		for _, wanted := range []manifest.Wanted{manifest.WantRun, manifest.WantPause} {
			var g gauges
			g.set("a", campaignGauges{phase: phase, pending: 5, counts: manifest.Counts{Pending: 5, Dead: 7}})
			g.open("a", &manifest.Campaign{Phase: phase, Wanted: wanted})
			want := lag
			if wanted == manifest.WantPause {
				want = 0
			}
			if s := g.state(time.Now()); s.Lag != want || len(s.Campaigns) != 0 || s.Phases[string(phase)] != 1 {
				t.Errorf("%s, wanted %s: lag %d, campaigns %+v, phases %v, want lag %d and no campaign", phase, wanted, s.Lag, s.Campaigns, s.Phases, want)
			}
		}
	}
}

// TestGaugesConcurrently: runners report while the metrics are read.
func TestGaugesConcurrently(t *testing.T) {
	t.Parallel()
	var g gauges
	var all sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		all.Go(func() {
			for i := range 500 {
				g.set(id, campaignGauges{phase: manifest.PhaseRunning, pending: i})
				g.remove(id)
			}
		})
		all.Go(func() {
			for range 500 {
				g.state(time.Now())
			}
		})
	}
	all.Wait()
	if s := g.state(time.Now()); s.Lag != 0 || len(s.Campaigns) != 0 {
		t.Errorf("lag %d of %d campaigns", s.Lag, len(s.Campaigns))
	}
}
