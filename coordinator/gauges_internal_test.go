package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/telemetry"
)

// anyPool has no workers, and every pool takes every campaign but those of the map.
type anyPool map[string]string

func (anyPool) States() map[string]map[string]int {
	return map[string]map[string]int{"mig": {"busy": 2, "idle": 1}}
}

func (p anyPool) Takes(pool, campaign string, _ manifest.Precision) bool { return p[pool] != campaign }

// at returns the figures with the pool default.
func (g *gauges) at(now time.Time) telemetry.ClusterState {
	return g.state(now, []string{manifest.DefaultPool}, anyPool{})
}

// TestLagOfPools: a pool has the items of campaigns that ask for it or for none, without those that its workers refuse.
func TestLagOfPools(t *testing.T) {
	t.Parallel()
	var g gauges
	g.set("any", campaignGauges{phase: record.PhaseRunning, pending: 5, inFlight: 2})
	g.set("gpu", campaignGauges{phase: record.PhaseRunning, pool: "gpu", pending: 100})
	g.set("refused", campaignGauges{phase: record.PhaseRunning, pending: 1000})
	s := g.state(time.Now(), []string{"cpu", "cpu"}, anyPool{"mig": "refused"})
	if want := map[string]int{"cpu": 1007, "gpu": 1107, "mig": 7}; !maps.Equal(s.Lags, want) {
		t.Errorf("lags %v, want %v", s.Lags, want)
	}
	if w := s.Workers; len(w) != 3 || w["mig"]["busy"] != 2 || w["mig"]["idle"] != 1 || len(w["cpu"]) != 4 {
		t.Errorf("workers %v", w)
	}
	for i := range 2 * maxPools {
		g.set(fmt.Sprint(i), campaignGauges{pool: fmt.Sprint("pool-", i)})
	}
	if s = g.at(time.Now()); len(s.Lags) != maxPools || len(s.Workers) != maxPools || s.Workers["mig"] == nil || s.Workers["default"] == nil {
		t.Errorf("%d pools", len(s.Lags))
	}
}

// TestEndedCampaign: the series of a campaign remain for 15 minutes after its end, behind those of active ones.
func TestEndedCampaign(t *testing.T) {
	t.Parallel()
	var g gauges
	now := time.Unix(1e9, 0)
	g.set("b", campaignGauges{phase: record.PhasePaused, paused: true, blocked: true})
	g.set("c", campaignGauges{phase: record.PhaseRunning, pending: 3})
	g.end(record.Status{ID: "a", Phase: record.PhaseRejected, Counts: record.Counts{Failed: 4}}, now)
	g.end(record.Status{ID: "d", Phase: record.PhaseFinished, Counts: record.Counts{Done: 4}}, now)
	s := g.at(now.Add(endedSeries - 1))
	var got []string
	for _, c := range s.Campaigns {
		got = append(got, c.ID+c.Blocked)
	}
	if want := []string{"bpaused", "c", "arejected", "d"}; !slices.Equal(got, want) || s.Campaigns[2].Items["failed"] != 4 || s.Lags["default"] != 3 {
		t.Errorf("campaigns %v, want %v; %+v", got, want, s)
	}
	if s.Phases["rejected"] != 1 || s.Phases["finished"] != 1 {
		t.Errorf("phases %v", s.Phases)
	}
	if s = g.at(now.Add(endedSeries)); len(s.Campaigns) != 2 || s.Phases["rejected"] != 0 {
		t.Errorf("campaigns %+v", s.Campaigns)
	}
}

// TestLag: the lag has the items of campaigns that run, and one for a campaign that waits for a worker. It is 0 without work, and no
// figure of an ended campaign remains.
func TestLag(t *testing.T) {
	t.Parallel()
	var g gauges
	now := time.Unix(1e9, 0)
	want := func(lag, campaigns int) {
		t.Helper()
		if s := g.at(now); s.Lags["default"] != lag || len(s.Campaigns) != campaigns {
			t.Errorf("lag %d, %d campaigns, want %d and %d", s.Lags["default"], len(s.Campaigns), lag, campaigns)
		}
	}
	want(0, 0)
	g.set("b", campaignGauges{phase: record.PhaseRunning, pending: 5, inFlight: 2, progress: now.Add(-time.Minute), counts: record.Counts{Pending: 5, Running: 2, Done: 3}})
	g.set("a", campaignGauges{phase: record.PhasePaused, paused: true, pending: 100, progress: now.Add(-time.Hour)})
	want(7, 2)
	g.set("c", campaignGauges{phase: record.PhaseQueued, waits: true})
	want(8, 3)
	g.set("c", campaignGauges{phase: record.PhaseQueued, waits: true, paused: true})
	want(7, 3)
	s := g.at(now)
	if b := s.Campaigns[1]; b.ID != "b" || b.Pending != 5 || b.InFlight != 2 || b.Idle != time.Minute || b.Items["done"] != 3 || b.Items["running"] != 2 {
		t.Errorf("campaign %+v", b)
	}
	if idle := s.Campaigns[0].Idle; idle != 0 {
		t.Errorf("a paused campaign is idle for %v", idle)
	}
	if s.Phases["running"] != 1 || s.Phases["paused"] != 1 || s.Phases["canary"] != 0 {
		t.Errorf("phases %v", s.Phases)
	}
	if idle := g.at(now.Add(-time.Hour)).Campaigns[1].Idle; idle != 0 {
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
	for phase, lag := range map[record.Phase]int{
		record.PhaseQueued: 0, record.PhasePreflight: 1, record.PhaseCanary: 1, record.PhaseRunning: 1, record.PhasePaused: 0, record.PhaseFinished: 0,
	} {
		for _, wanted := range []record.Wanted{record.WantRun, record.WantPause} {
			var g gauges
			g.set("a", campaignGauges{phase: phase, pending: 5, counts: record.Counts{Pending: 5, Dead: 7}})
			g.open("a", &record.Campaign{Phase: phase, Wanted: wanted})
			want := lag
			if wanted == record.WantPause {
				want = 0
			}
			if s := g.at(time.Now()); s.Lags["default"] != want || len(s.Campaigns) != 0 || s.Phases[string(phase)] != 1 {
				t.Errorf("%s, wanted %s: lag %d, campaigns %+v, phases %v, want lag %d and no campaign", phase, wanted, s.Lags["default"], s.Campaigns, s.Phases, want)
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
				g.set(id, campaignGauges{phase: record.PhaseRunning, pending: i})
				g.remove(id)
			}
		})
		all.Go(func() {
			for range 500 {
				g.at(time.Now())
			}
		})
	}
	all.Wait()
	if s := g.at(time.Now()); s.Lags["default"] != 0 || len(s.Campaigns) != 0 {
		t.Errorf("lag %d of %d campaigns", s.Lags["default"], len(s.Campaigns))
	}
}
