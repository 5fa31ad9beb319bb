package health

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
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
	now    atomic.Pointer[usage] // nil before the first check
	logged time.Time
}

// usage is the result of a check.
type usage struct {
	text    string
	results bool               // the result stream is nearly full
	fills   map[string]float64 // used shares, by stream
}

func (a *Streams) last() usage {
	if u := a.now.Load(); u != nil {
		return *u
	}
	return usage{}
}

// Shares returns the used shares of the streams.
func (a *Streams) Shares() map[string]float64 { return a.last().fills }

// ResultsFull reports whether the result stream is nearly full.
func (a *Streams) ResultsFull() bool { return a.last().results }

// Problem describes the streams that are nearly full, for people; it is empty without one.
func (a *Streams) Problem() string { return a.last().text }

// Watch checks the streams until ctx ends.
func (a *Streams) Watch(ctx context.Context, cfg Config) error {
	a.logged = time.Time{}
	tick := time.NewTicker(StreamTicks * cfg.Tick)
	defer tick.Stop()
	for {
		a.check(ctx, cfg)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// check measures the streams. It logs those that are nearly full.
func (a *Streams) check(ctx context.Context, cfg Config) {
	all, err := cfg.Usage(ctx)
	if err != nil {
		if ctx.Err() == nil {
			cfg.Logger.Warn("could not measure the streams", "reason", err)
		}
		return
	}
	var full []string
	u := &usage{fills: map[string]float64{}}
	for _, s := range all {
		u.fills[s.Name] = s.Fill()
		if s.Fill() >= alarmFill {
			text := fmt.Sprintf("stream %s is %.0f %% full", s.Name, 100*s.Fill())
			if s.MaxBytes > 0 && s.Results() {
				text += fmt.Sprintf(" (of %.3g MiB): workers wait; give JetStream more storage", float64(s.MaxBytes)/(1<<20))
			} else if s.MaxBytes > 0 {
				text += fmt.Sprintf(" (of %.3g MiB): further items wait; give JetStream more storage", float64(s.MaxBytes)/(1<<20))
			}
			full = append(full, text)
			u.results = u.results || s.Results()
		}
	}
	u.text = strings.Join(full, "; ")
	a.now.Store(u)
	if now := cfg.Now(); u.text != "" && now.Sub(a.logged) >= alarmLog {
		a.logged = now
		cfg.Logger.Warn("a stream is nearly full", "streams", u.text)
	}
}
