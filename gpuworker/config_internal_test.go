package gpuworker

import (
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/job"
)

func TestDefaultsOfConfig(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	c.Steps(1)
	if since := time.Since(c.Now()); since < 0 || since > time.Minute {
		t.Errorf("the clock is %v late", since)
	}
	if c.Name != "worker" || c.AckWait != 30*time.Second || c.Idle != time.Second || c.ProbePause != time.Second || c.PauseAfter != 15*time.Minute {
		t.Errorf("defaults %+v", c)
	}
	if c.SolveMemory != job.SolveMemory(job.DefaultSolveShare) {
		t.Errorf("%d bytes for solving", c.SolveMemory)
	}
	stepped, now := 0, newStoppedClock()
	given := Config{
		Name: "a", AckWait: 1, Idle: 2, ProbePause: 3, PauseAfter: 4, SolveMemory: 6, Steps: func(n int) { stepped = n }, Now: now.now,
	}.withDefaults()
	given.Steps(7)
	if given.Name != "a" || given.AckWait != 1 || given.Idle != 2 || given.ProbePause != 3 || given.PauseAfter != 4 ||
		given.SolveMemory != 6 || stepped != 7 || !given.Now().Equal(now.time) {
		t.Errorf("given values changed to %+v", given)
	}
}

// Limits of fields are part of their ranges.
func TestRangesOfConfig(t *testing.T) {
	t.Parallel()
	good := quietWorker(t).cfg
	least := good
	least.AckWait, least.Idle, least.Once, least.Patience, least.ProbePause, least.PauseAfter, least.SolveMemory = 0, 0, 0, 0, 0, 0, 0
	if err := least.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"Work is missing":        func(c *Config) { c.Work = nil },
		"Logger is missing":      func(c *Config) { c.Logger = nil },
		"Tracer is missing":      func(c *Config) { c.Tracer = nil },
		"Instruments is missing": func(c *Config) { c.Instruments = nil },
		"AckWait":                func(c *Config) { c.AckWait = -1 },
		"Idle":                   func(c *Config) { c.Idle = -1 },
		"Once":                   func(c *Config) { c.Once = -1 },
		"SolveMemory":            func(c *Config) { c.SolveMemory = -1 },
		"Patience":               func(c *Config) { c.Patience = -1 },
		"ProbePause":             func(c *Config) { c.ProbePause = -1 },
		"PauseAfter":             func(c *Config) { c.PauseAfter = -1 },
		"Limits: Finish":         func(c *Config) { c.Limits.Finish = -1 },
		"Work: Queue is missing": func(c *Config) { c.Work = Single{} },
	} {
		bad := good
		change(&bad)
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "configure worker: "+name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
