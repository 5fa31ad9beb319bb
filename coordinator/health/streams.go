package health

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
	// StreamTicks is the interval between two checks of the streams in ticks, alarmLog the interval between log lines.
	StreamTicks = 10
	alarmLog    = 10 * time.Minute
)

// Streams describes the streams that are nearly full.
type Streams struct {
	mu      sync.Mutex
	text    string
	results bool               // the result stream is nearly full
	fills   map[string]float64 // used shares, by stream
	logged  time.Time
}

// Shares returns the used shares of the streams.
func (a *Streams) Shares() map[string]float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fills // never changed, only replaced
}

// ResultsFull reports whether the result stream is nearly full.
func (a *Streams) ResultsFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.results
}

// Problem describes the streams that are nearly full, for people; it is empty without one.
func (a *Streams) Problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text
}

// Watch checks the streams until ctx ends.
func (a *Streams) Watch(ctx context.Context, cfg Config) error {
	a.logged = time.Time{}
	tick := time.NewTicker(StreamTicks * cfg.Tick)
	defer tick.Stop()
	for {
		a.Check(ctx, cfg)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Check measures the streams. It logs those that are nearly full.
func (a *Streams) Check(ctx context.Context, cfg Config) {
	all, err := cfg.Usage(ctx)
	if err != nil {
		if ctx.Err() == nil {
			cfg.Logger.Warn("could not measure the streams", "reason", err)
		}
		return
	}
	var full []string
	fills, results := map[string]float64{}, false
	for _, s := range all {
		fills[s.Name] = s.Fill()
		if s.Fill() >= alarmFill {
			full = append(full, fmt.Sprintf("stream %s is %.0f %% full", s.Name, 100*s.Fill()))
			results = results || s.Results()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text, a.results, a.fills = strings.Join(full, "; "), results, fills
	if now := cfg.Now(); a.text != "" && now.Sub(a.logged) >= alarmLog {
		a.logged = now
		cfg.Logger.Warn("a stream is nearly full; at its limit workers wait", "streams", a.text)
	}
}
