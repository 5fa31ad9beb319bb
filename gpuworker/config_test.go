package gpuworker_test

import (
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/queue"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	good := config(t, newQueue(t, queue.Config{}), newStore(t))
	if _, err := gpuworker.New(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field  string
		change func(*gpuworker.Config)
	}{
		{"Work is missing", func(c *gpuworker.Config) { c.Work = nil }},
		{"Queue is missing", func(c *gpuworker.Config) { single(c, func(s *gpuworker.Single) { s.Queue = nil }) }},
		{"Store is missing", func(c *gpuworker.Config) { single(c, func(s *gpuworker.Single) { s.Items.Store = nil }) }},
		{"Sources is missing", func(c *gpuworker.Config) { single(c, func(s *gpuworker.Single) { s.Items.Sources = nil }) }},
		{"Engine is missing", func(c *gpuworker.Config) { single(c, func(s *gpuworker.Single) { s.Items.Engine = nil }) }},
		{"Logger is missing", func(c *gpuworker.Config) { c.Logger = nil }},
		{"Tracer is missing", func(c *gpuworker.Config) { c.Tracer = nil }},
		{"Instruments is missing", func(c *gpuworker.Config) { c.Instruments = nil }},
		{"Batch: 2000", func(c *gpuworker.Config) { batchOf(c, 2000) }},
		{"AckWait: -1s", func(c *gpuworker.Config) { c.AckWait = -time.Second }},
		{"Limits: Solve: -1s", func(c *gpuworker.Config) { c.Limits.Solve = -time.Second }},
		{"Once: -1s", func(c *gpuworker.Config) { c.Once = -time.Second }},
		{"Idle: -1s", func(c *gpuworker.Config) { c.Idle = -time.Second }},
		{"DecodeMemory: -1", func(c *gpuworker.Config) { c.DecodeMemory = -1 }},
		{"SolveMemory: -1", func(c *gpuworker.Config) { c.SolveMemory = -1 }},
		{"Patience: -1s", func(c *gpuworker.Config) { c.Patience = -time.Second }},
		{"ProbePause: -1s", func(c *gpuworker.Config) { c.ProbePause = -time.Second }},
		{"PauseAfter: -1s", func(c *gpuworker.Config) { c.PauseAfter = -time.Second }},
		{"", func(c *gpuworker.Config) {
			c.AckWait, c.Idle, c.Once, c.Patience, c.ProbePause, c.PauseAfter = 0, 0, 0, 0, 0, 0
			c.DecodeMemory, c.SolveMemory = 0, 0
		}},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := gpuworker.New(cfg); (err == nil) != (c.field == "") || err != nil && !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: error is %v", c.field, err)
		}
	}
}
