package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// keepSeries is the time after its last batch for which a process exports the solver time of a campaign, so that Prometheus reads the last
// value and the number of series has a limit.
const keepSeries = time.Hour

// SolverTime counts the time in the solver by campaign and its owner. It may be used concurrently.
type SolverTime struct {
	now func() time.Time

	mu    sync.Mutex
	spent map[string]*spentTime
}

// spentTime is the time of one campaign, and the end of its last batch.
type spentTime struct {
	owner string
	total time.Duration
	last  time.Time
}

// newSolverTime reports to counter.
func newSolverTime(meter metric.Meter, counter metric.Float64ObservableCounter) (*SolverTime, error) {
	s := &SolverTime{now: time.Now, spent: map[string]*spentTime{}}
	_, err := register(meter, "the solver's time", func(_ context.Context, o metric.Observer) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(keepSeries)
		for campaign, t := range s.spent {
			o.ObserveFloat64(counter, t.total.Seconds(), metric.WithAttributes(CampaignKey.String(campaign), OwnerKey.String(t.owner)))
		}
		return nil
	}, counter)
	return s, err
}

// Add adds the time of a chunk of steps. A time of 0 lets the counter of a campaign begin: Prometheus sees an increase only from an earlier value.
func (s *SolverTime) Add(campaign, owner string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.spent[campaign]
	if t == nil {
		for age := keepSeries; len(s.spent) >= maxCampaigns; age /= 2 {
			s.forget(age)
		}
		t = &spentTime{owner: owner}
		s.spent[campaign] = t
	}
	t.total, t.last = t.total+took, s.now()
}

// forget drops the campaigns without a batch for some time.
func (s *SolverTime) forget(age time.Duration) {
	for campaign, t := range s.spent {
		if s.now().Sub(t.last) >= age {
			delete(s.spent, campaign)
		}
	}
}
