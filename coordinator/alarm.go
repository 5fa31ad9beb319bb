package coordinator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// alarmFill is the used share of a stream from which an alarm is raised.
	alarmFill = 0.8
	// alarmTicks is the interval between two checks of the streams in ticks, alarmLog the interval between log lines.
	alarmTicks = 10
	alarmLog   = 10 * time.Minute
)

// alarm describes the streams that are nearly full.
type alarm struct {
	mu      sync.Mutex
	text    string
	results bool // the result stream is nearly full
}

// resultsFull reports whether the result stream is nearly full.
func (a *alarm) resultsFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.results
}

func (a *alarm) problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text
}

// watch checks the streams until ctx ends. It reports a stream that is nearly full by the log, the statuses of the
// campaigns, and the gauge ddiff.stream.fill.
func (a *alarm) watch(ctx context.Context, cfg Config) error {
	var gauge metric.Float64Gauge
	if cfg.Meter != nil {
		var err error
		gauge, err = cfg.Meter.Float64Gauge("ddiff.stream.fill", metric.WithUnit("1"), metric.WithDescription("Used share of a stream's limit."))
		if err != nil {
			return fmt.Errorf("create metric: %w", err)
		}
	}
	tick := time.NewTicker(alarmTicks * cfg.Tick)
	defer tick.Stop()
	var logged time.Time
	for {
		streams, err := cfg.Usage(ctx)
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("could not measure the streams", "reason", err)
		}
		var full []string
		results := false
		for _, s := range streams {
			if gauge != nil {
				gauge.Record(ctx, s.Fill(), metric.WithAttributes(attribute.String("stream", s.Name)))
			}
			if s.Fill() >= alarmFill {
				full = append(full, fmt.Sprintf("stream %s is %.0f %% full", s.Name, 100*s.Fill()))
				results = results || s.Results()
			}
		}
		if err == nil {
			a.mu.Lock()
			a.text, a.results = strings.Join(full, "; "), results
			a.mu.Unlock()
		}
		if now := cfg.Now(); len(full) > 0 && now.Sub(logged) >= alarmLog {
			logged = now
			cfg.Logger.Warn("a stream is nearly full; at its limit workers wait", "streams", strings.Join(full, "; "))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// problem describes what delays the campaigns, for people; it is empty if nothing does.
func (s *Service) problem() string {
	if p := s.health.problem(); p != "" {
		return p
	}
	return s.alarm.problem()
}
