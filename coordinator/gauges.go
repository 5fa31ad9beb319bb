package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/telemetry"
)

// gauges has what the leader reports of the campaigns in its metrics. The entry of a campaign exists from the start of its runner until
// endedSeries after its end, so that also the rules for short campaigns see it.
type gauges struct {
	mu   sync.Mutex
	byID map[string]campaignGauges
}

// campaignGauges are the figures of one campaign.
type campaignGauges struct {
	phase             record.Phase
	pool              string             // that the campaign asks for
	needs             manifest.Precision // empty: any, or not known
	blocked           bool               // waits for a person
	ended             time.Time          // zero while the campaign is active
	paused            bool
	opening           bool // the queue and the ledger are not yet read
	waits             bool // for a worker, with nothing in the queue
	pending, inFlight int
	counts            record.Counts
	rate              float64
	progress          time.Time // of the last outcome
	behind            int       // outcomes that are not in the ledger
	uses              []record.Use
	slack             *float64 // to the deadline, in seconds; nil: not known
	limit             float64  // largest used share of a limit; 0: none is used
}

// open enters a campaign whose queue and ledger are not yet read. Until set, it has no series of its own, and if workers may
// lease its items it counts as one item that needs a worker: a change of the leader or an outage of the store must not look
// like the end of the work.
func (g *gauges) open(id string, c *record.Campaign) {
	g.set(id, campaignGauges{phase: c.Phase, pool: c.Spec.Pool, needs: c.Spec.Precision, paused: c.Wanted != record.WantRun, opening: true, waits: c.Open()})
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

// count returns the number of campaigns.
func (g *gauges) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.byID)
}

// endedSeries is the time for which the series of an ended campaign remain.
const endedSeries = 15 * time.Minute

// end enters the end of a campaign with its last status.
func (g *gauges) end(last record.Status, now time.Time) {
	g.set(last.ID, campaignGauges{
		phase: last.Phase, blocked: last.Phase == record.PhaseRejected, ended: now, paused: true, counts: last.Counts, uses: last.Uses,
	})
}

// maxPools is the largest number of pools with series of their own.
const maxPools = 50

// poolNames returns at most maxPools names of pools without repetition: the given ones, those of live workers, and those that
// campaigns ask for. The caller holds g.mu.
func (g *gauges) poolNames(given []string, workers map[string]map[string]int) []string {
	asked := map[string]bool{}
	for _, c := range g.byID {
		if c.pool != "" {
			asked[c.pool] = true
		}
	}
	var out []string
	for _, name := range slices.Concat(given, slices.Sorted(maps.Keys(workers)), slices.Sorted(maps.Keys(asked))) {
		if len(out) < maxPools && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// poolWorkers knows the workers of pools, see [health.Workers].
type poolWorkers interface {
	States() map[string]map[string]int
	Takes(pool, campaign string, needs manifest.Precision) bool
}

// state returns the figures of all campaigns at a time, and those of the given pools, of the workers' pools and of the pools that
// campaigns ask for.
func (g *gauges) state(now time.Time, given []string, workers poolWorkers) telemetry.ClusterState {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.byID, func(_ string, c campaignGauges) bool { return !c.ended.IsZero() && now.Sub(c.ended) >= endedSeries })
	out := telemetry.ClusterState{Lags: map[string]int{}, Phases: map[string]int{}, Workers: map[string]map[string]int{}}
	for _, p := range []record.Phase{record.PhaseQueued, record.PhasePreflight, record.PhaseCanary, record.PhaseRunning, record.PhasePaused} {
		out.Phases[string(p)] = 0
	}
	states := workers.States()
	pools := g.poolNames(given, states)
	for _, pool := range pools {
		out.Lags[pool], out.Workers[pool] = 0, map[string]int{"busy": 0, "idle": 0, "suspended": 0, "draining": 0}
		maps.Copy(out.Workers[pool], states[pool])
	}
	ids := slices.SortedFunc(maps.Keys(g.byID), func(a, b string) int {
		return cmp.Or(g.byID[a].ended.Compare(g.byID[b].ended), cmp.Compare(a, b)) // active ones first
	})
	for _, id := range ids {
		c := g.byID[id]
		out.Phases[string(c.phase)]++
		for _, pool := range pools {
			if (c.pool == "" || c.pool == pool) && workers.Takes(pool, id, c.needs) {
				out.Lags[pool] += c.lag()
			}
		}
		if c.opening {
			continue
		}
		idle := time.Duration(0)
		if !c.progress.IsZero() && !c.paused {
			idle = max(now.Sub(c.progress), 0)
		}
		blocked := ""
		if c.blocked {
			blocked = string(c.phase)
		}
		seconds, costs := map[string]float64{}, map[string]float64{}
		for _, u := range c.uses {
			seconds[u.Pool] += u.Seconds
			costs[u.Pool] += u.Cost
		}
		out.Campaigns = append(out.Campaigns, telemetry.CampaignState{
			DeviceTime: seconds, Cost: costs, Slack: c.slack, Limit: c.limit,
			ID: id, Blocked: blocked, Pending: c.pending, InFlight: c.inFlight, Rate: c.rate, Idle: idle, LedgerLag: c.behind,
			Items: map[string]int{
				"pending": c.counts.Pending, "running": c.counts.Running, "done": c.counts.Done, "failed": c.counts.Failed,
				"dead": c.counts.Dead, "cancelled": c.counts.Cancelled,
			},
		})
	}
	return out
}

// lag returns the number of items that need workers.
func (c campaignGauges) lag() int {
	switch lag := c.pending + c.inFlight; {
	case c.paused:
		return 0
	case c.waits:
		return max(lag, 1)
	default:
		return lag
	}
}

// report enters the campaign's figures into the metrics. The queue has so many items that wait and that are leased.
func (r *runner) report(waiting, leased int) {
	now := r.s.cfg.Now()
	c := campaignGauges{
		phase: r.rec.Phase, pool: r.rec.Spec.Pool, needs: r.rec.Spec.Precision,
		blocked: r.rec.Phase == record.PhasePaused && r.rec.Reason != "" && !strings.HasPrefix(r.rec.Reason, limitReached),
		paused:  r.queue.paused || r.rec.Wanted != record.WantRun,
		pending: waiting, inFlight: leased, progress: r.outcomes.progress, behind: r.outcomes.lag(),
		counts: r.outcomes.ledger.Total(leased, r.rec.Phase == record.PhaseCancelled),
	}
	c.rate, _ = r.outcomes.pace.rate(now)
	used := r.used()
	c.uses, c.limit = used.Uses, max(usedShare(r.rec.Spec.Budget, used), r.capShare)
	if slack := r.slack; r.slackKnown && !c.paused && r.hold == "" { // otherwise more workers do not help
		c.slack = &slack
	}
	r.s.gauges.set(r.id, c)
}

// skipCounted leaves the outcomes out of ddiff.ledger.items that the stream has when the runner begins: an earlier leader has
// counted them.
func (r *runner) skipCounted(ctx context.Context) (err error) {
	if r.outcomes.counts {
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
	state := s.gauges.state(s.cfg.Now(), s.cfg.Pools, &s.workers)
	state.Streams = s.streams.Shares()
	return state
}
