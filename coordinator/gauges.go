package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ddiff/manifest"
	"ddiff/telemetry"
)

// gauges has what the leader reports of the active campaigns in its metrics. The entry of a campaign exists from the start of
// its runner to the end of it, so that no series of an ended campaign remains.
type gauges struct {
	mu   sync.Mutex
	byID map[string]campaignGauges
}

// campaignGauges are the figures of one campaign.
type campaignGauges struct {
	phase             manifest.Phase
	paused            bool
	opening           bool // the queue and the ledger are not yet read
	waits             bool // for a worker, with nothing in the queue
	pending, inFlight int
	counts            manifest.Counts
	rate              float64
	progress          time.Time // of the last outcome
	behind            int       // outcomes that are not in the ledger
}

// open enters a campaign whose queue and ledger are not yet read. Until set, it has no series of its own, and if workers may
// lease its items it counts as one item that needs a worker: a change of the leader or an outage of the store must not look
// like the end of the work.
func (g *gauges) open(id string, c *manifest.Campaign) {
	g.set(id, campaignGauges{phase: c.Phase, paused: c.Wanted != manifest.WantRun, opening: true, waits: c.Open()})
}

// set replaces the figures of a campaign.
func (g *gauges) set(id string, c campaignGauges) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID == nil {
		g.byID = map[string]campaignGauges{}
	}
	g.byID[id] = c
}

// remove removes the figures of a campaign.
func (g *gauges) remove(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byID, id)
}

// state returns the figures of all campaigns at a time.
func (g *gauges) state(now time.Time) telemetry.ClusterState {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := telemetry.ClusterState{Phases: map[string]int{}}
	for _, p := range []manifest.Phase{manifest.PhaseQueued, manifest.PhasePreflight, manifest.PhaseCanary, manifest.PhaseRunning, manifest.PhasePaused} {
		out.Phases[string(p)] = 0
	}
	for _, id := range slices.Sorted(maps.Keys(g.byID)) {
		c := g.byID[id]
		out.Phases[string(c.phase)]++
		if !c.paused {
			lag := c.pending + c.inFlight
			if c.waits {
				lag = max(lag, 1)
			}
			out.Lag += lag
		}
		if c.opening {
			continue
		}
		idle := time.Duration(0)
		if !c.progress.IsZero() && !c.paused {
			idle = max(now.Sub(c.progress), 0)
		}
		out.Campaigns = append(out.Campaigns, telemetry.CampaignState{
			ID: id, Pending: c.pending, InFlight: c.inFlight, Rate: c.rate, Idle: idle, LedgerLag: c.behind,
			Items: map[string]int{
				"pending": c.counts.Pending, "running": c.counts.Running, "done": c.counts.Done, "failed": c.counts.Failed,
				"dead": c.counts.Dead, "cancelled": c.counts.Cancelled,
			},
		})
	}
	return out
}

// report enters the campaign's figures into the metrics. The queue has so many items that wait and that are leased.
func (r *runner) report(waiting, leased int) {
	now := r.s.cfg.Now()
	c := campaignGauges{
		phase: r.rec.Phase, paused: r.paused || r.rec.Wanted != manifest.WantRun, waits: r.awaitedPrecision() != "",
		pending: waiting, inFlight: leased, progress: r.progress, behind: r.outcomes.lag(),
		counts: r.ledger.Total(leased, r.rec.Phase == manifest.PhaseCancelled),
	}
	c.rate, _ = r.pace.rate(now)
	r.s.gauges.set(r.id, c)
}

// skipCounted leaves the outcomes out of ddiff.ledger.items that the stream has when the runner begins: an earlier leader has
// counted them.
func (r *runner) skipCounted(ctx context.Context) (err error) {
	if r.outcomes.counts || r.s.cfg.run != nil {
		return nil
	}
	if r.outcomes.counted, err = r.queue.LastResult(ctx); err != nil {
		return fmt.Errorf("read the last result: %w", err)
	}
	r.outcomes.counts = true
	return nil
}

// clusterState returns what the leader reports.
func (s *Service) clusterState() telemetry.ClusterState {
	state := s.gauges.state(s.cfg.Now())
	state.Workers, state.Streams = s.workers.States(), s.streams.Shares()
	return state
}
