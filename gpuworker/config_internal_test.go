package gpuworker

import (
	"testing"
	"time"

	"ddiff/gpuworker/job"
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
	if c.DecodeMemory != job.DecodeMemory() || c.SolveMemory != job.SolveMemory(job.DefaultSolveShare) {
		t.Errorf("%d bytes for decoding, %d for solving", c.DecodeMemory, c.SolveMemory)
	}
	stepped, now := 0, newStoppedClock()
	given := Config{
		Name: "a", AckWait: 1, Idle: 2, ProbePause: 3, PauseAfter: 4, DecodeMemory: 5, SolveMemory: 6, Steps: func(n int) { stepped = n }, Now: now.now,
	}.withDefaults()
	given.Steps(7)
	if given.Name != "a" || given.AckWait != 1 || given.Idle != 2 || given.ProbePause != 3 || given.PauseAfter != 4 || given.DecodeMemory != 5 ||
		given.SolveMemory != 6 || stepped != 7 || !given.Now().Equal(now.time) {
		t.Errorf("given values changed to %+v", given)
	}
}
