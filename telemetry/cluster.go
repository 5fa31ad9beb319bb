package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// maxCampaigns is the largest number of campaigns with series of their own.
const maxCampaigns = 500

// maxSeries is the largest number of series of one metric. Beyond it, OpenTelemetry adds up the others in one series without
// labels. ddiff.campaign.items has 6 states for each campaign.
const maxSeries = 8 * maxCampaigns

// Cluster are the metrics of a coordinator. They may be used concurrently. A nil Cluster records nothing.
type Cluster struct {
	published, settled metric.Int64Counter

	meter metric.Meter
}

// Standing is what every coordinator reports of itself.
type Standing struct {
	// Leads: it is the leader. Store: it can use the store.
	Leads, Store bool
}

// ClusterState is what the leader reports of the cluster.
type ClusterState struct {
	// Lags are the numbers of items that need workers, by pool.
	Lags map[string]int
	// Campaigns are the campaigns, in the order of their importance.
	Campaigns []CampaignState
	// Phases counts the campaigns, and Workers the live workers by pool and state.
	Phases  map[string]int
	Workers map[string]map[string]int
	// Streams are the used shares of the streams' limits.
	Streams map[string]float64
}

// CampaignState is what the leader reports of one campaign.
type CampaignState struct {
	ID                string
	Pending, InFlight int
	// Blocked is the phase in which the campaign waits for a person; empty: it does not.
	Blocked string
	// Items counts the items of the ledger by state.
	Items map[string]int
	// DeviceTime is in device-seconds, by pool, and Cost what they cost.
	DeviceTime, Cost map[string]float64
	// Limit is the largest used share of a limit of device-seconds or cost; 0: none is used.
	Limit float64
	// Slack is the time from the expected end to the deadline in seconds; nil: not known.
	Slack *float64
	// Rate is in items per second.
	Rate float64
	Idle time.Duration
	// LedgerLag is the number of outcomes in the stream that are not in the ledger.
	LedgerLag int
}

// NewCluster creates the instruments on meter. It fails only when the meter has a conflicting instrument of the same
// name.
func NewCluster(meter metric.Meter) (*Cluster, error) {
	m := maker{meter: meter}
	c := &Cluster{published: m.counter("ddiff.queue.published"), settled: m.counter("ddiff.ledger.items"), meter: meter}
	return c, m.err()
}

// Publish counts published items.
func (c *Cluster) Publish(ctx context.Context, items int) {
	if c != nil {
		c.published.Add(ctx, int64(items))
	}
}

// Settle counts items that reached a final state.
func (c *Cluster) Settle(ctx context.Context, outcome string, items int) {
	if c != nil {
		c.settled.Add(ctx, int64(items), metric.WithAttributes(OutcomeKey.String(outcome)))
	}
}

// ObserveStanding reports a coordinator until stop is called.
func (c *Cluster) ObserveStanding(standing func() Standing) (stop func() error, err error) {
	if c == nil {
		return func() error { return nil }, nil
	}
	return observe(c.meter, FromCoordinator, func(report report) {
		s := standing()
		report("ddiff.leader", one(s.Leads))
		report("ddiff.store.available", one(s.Store))
	})
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Observe reports the cluster until stop is called; then no series of the cluster remains in this process, except for the
// counters.
func (c *Cluster) Observe(state func() ClusterState) (stop func() error, err error) {
	if c == nil {
		return func() error { return nil }, nil
	}
	return observe(c.meter, FromLeader, func(report report) { state().report(report) })
}

func (s ClusterState) report(report report) {
	for pool, n := range s.Lags {
		report("ddiff.queue.lag", float64(n), pool)
	}
	for phase, n := range s.Phases {
		report("ddiff.campaigns", float64(n), phase)
	}
	for pool, states := range s.Workers {
		for state, n := range states {
			report("ddiff.workers", float64(n), pool, state)
		}
	}
	for stream, share := range s.Streams {
		report("ddiff.stream.fill", share, stream)
	}
	for _, c := range s.Campaigns[:min(len(s.Campaigns), maxCampaigns)] {
		report("ddiff.queue.pending", float64(c.Pending), c.ID)
		report("ddiff.queue.in_flight", float64(c.InFlight), c.ID)
		report("ddiff.ledger.lag", float64(c.LedgerLag), c.ID)
		report("ddiff.campaign.rate", c.Rate, c.ID)
		report("ddiff.campaign.idle", c.Idle.Seconds(), c.ID)
		if c.Blocked != "" {
			report("ddiff.campaign.blocked", 1, c.ID, c.Blocked)
		}
		if c.Slack != nil {
			report("ddiff.campaign.slack", *c.Slack, c.ID)
		}
		if c.Limit > 0 {
			report("ddiff.campaign.limit", c.Limit, c.ID)
		}
		for pool, seconds := range c.DeviceTime {
			report("ddiff.campaign.device_time", seconds, c.ID, pool)
		}
		for pool, cost := range c.Cost {
			report("ddiff.campaign.cost", cost, c.ID, pool)
		}
		for state, n := range c.Items {
			report("ddiff.campaign.items", float64(n), c.ID, state)
		}
	}
}
