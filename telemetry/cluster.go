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

	meter                                     metric.Meter
	leader, available, lag, pending, inFlight metric.Int64ObservableGauge
	campaigns, blocked, items, ledger         metric.Int64ObservableGauge
	workers                                   metric.Int64ObservableGauge
	rate, idle, fill                          metric.Float64ObservableGauge
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
	c := &Cluster{
		published: m.counter("ddiff.queue.published"), settled: m.counter("ddiff.ledger.items"), meter: meter,
		leader: m.gauge("ddiff.leader"), available: m.gauge("ddiff.store.available"),
		lag: m.gauge("ddiff.queue.lag"), pending: m.gauge("ddiff.queue.pending"), inFlight: m.gauge("ddiff.queue.in_flight"),
		campaigns: m.gauge("ddiff.campaigns"), items: m.gauge("ddiff.campaign.items"), ledger: m.gauge("ddiff.ledger.lag"),
		blocked: m.gauge("ddiff.campaign.blocked"), workers: m.gauge("ddiff.workers"), rate: m.floatGauge("ddiff.campaign.rate"), idle: m.floatGauge("ddiff.campaign.idle"),
		fill: m.floatGauge("ddiff.stream.fill"),
	}
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
	return register(c.meter, "the coordinator", func(_ context.Context, o metric.Observer) error {
		s := standing()
		o.ObserveInt64(c.leader, number(s.Leads))
		o.ObserveInt64(c.available, number(s.Store))
		return nil
	}, c.leader, c.available)
}

func number(b bool) int64 {
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
	return register(c.meter, "the cluster", func(_ context.Context, o metric.Observer) error {
		c.observe(o, state())
		return nil
	}, c.lag, c.pending, c.inFlight, c.campaigns, c.blocked, c.items, c.ledger, c.workers, c.rate, c.idle, c.fill)
}

func (c *Cluster) observe(o metric.Observer, s ClusterState) {
	for pool, n := range s.Lags {
		o.ObserveInt64(c.lag, int64(n), metric.WithAttributes(PoolKey.String(pool)))
	}
	for phase, n := range s.Phases {
		o.ObserveInt64(c.campaigns, int64(n), metric.WithAttributes(PhaseKey.String(phase)))
	}
	for pool, states := range s.Workers {
		for state, n := range states {
			o.ObserveInt64(c.workers, int64(n), metric.WithAttributes(PoolKey.String(pool), StateKey.String(state)))
		}
	}
	for stream, share := range s.Streams {
		o.ObserveFloat64(c.fill, share, metric.WithAttributes(StreamKey.String(stream)))
	}
	for _, campaign := range s.Campaigns[:min(len(s.Campaigns), maxCampaigns)] {
		id := CampaignKey.String(campaign.ID)
		of := metric.WithAttributes(id)
		o.ObserveInt64(c.pending, int64(campaign.Pending), of)
		o.ObserveInt64(c.inFlight, int64(campaign.InFlight), of)
		o.ObserveInt64(c.ledger, int64(campaign.LedgerLag), of)
		o.ObserveFloat64(c.rate, campaign.Rate, of)
		o.ObserveFloat64(c.idle, campaign.Idle.Seconds(), of)
		if campaign.Blocked != "" {
			o.ObserveInt64(c.blocked, 1, metric.WithAttributes(id, PhaseKey.String(campaign.Blocked)))
		}
		for state, n := range campaign.Items {
			o.ObserveInt64(c.items, int64(n), metric.WithAttributes(id, StateKey.String(state)))
		}
	}
}
