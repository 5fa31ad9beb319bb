package coordinator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
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
	results bool               // the result stream is nearly full
	fills   map[string]float64 // used shares, by stream
}

// shares returns the used shares of the streams.
func (a *alarm) shares() map[string]float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fills // never changed, only replaced
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
	tick := time.NewTicker(alarmTicks * cfg.Tick)
	defer tick.Stop()
	var logged time.Time
	for {
		streams, err := cfg.Usage(ctx)
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("could not measure the streams", "reason", err)
		}
		var full []string
		fills := map[string]float64{}
		results := false
		for _, s := range streams {
			fills[s.Name] = s.Fill()
			if s.Fill() >= alarmFill {
				full = append(full, fmt.Sprintf("stream %s is %.0f %% full", s.Name, 100*s.Fill()))
				results = results || s.Results()
			}
		}
		if err == nil {
			a.mu.Lock()
			a.text, a.results, a.fills = strings.Join(full, "; "), results, fills
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
