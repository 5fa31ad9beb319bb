package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/restore/job"
)

// StageFlags are the limits of a worker's stages.
type StageFlags struct {
	timeouts    []string // [STAGE=]DURATION
	MemoryShare float64
}

// Add registers the flags.
func (s *StageFlags) Add(f *pflag.FlagSet) {
	f.StringArrayVar(&s.timeouts, "stage-timeout", nil, fmt.Sprintf("time limit of one stage, or without STAGE of each stage, as `[STAGE=]DURATION`;"+
		" a longer stage ends the process with exit code %d; repeatable (default prepare=%v, compile=%v, solve=%v, finish=%v)", exitHung, guard.DefaultStage, guard.DefaultStage, guard.DefaultSolve, guard.DefaultStage))
	s.AddMemory(f)
}

// AddMemory registers the flag of the memory alone, for commands without stages.
func (s *StageFlags) AddMemory(f *pflag.FlagSet) {
	f.Float64Var(&s.MemoryShare, "memory-share", job.DefaultSolveShare, "largest `share` of the machine's memory for solving a batch, by an estimate; an image that needs more fails")
}

// CheckMemory returns a usage error for a share that is none.
func (s *StageFlags) CheckMemory() error {
	if !(s.MemoryShare >= 0 && s.MemoryShare <= 1) {
		return Usage(fmt.Errorf("--memory-share: %v is not between 0 and 1; use 0.5 for half of the memory", s.MemoryShare))
	}
	return nil
}

// Limits parses the flags. Later flags override earlier ones.
func (s *StageFlags) Limits() (guard.Limits, error) {
	var l guard.Limits
	if err := s.CheckMemory(); err != nil {
		return l, err
	}
	stages := map[string][]*time.Duration{
		"": {&l.Prepare, &l.Compile, &l.Solve, &l.Finish}, "prepare": {&l.Prepare}, "compile": {&l.Compile}, "solve": {&l.Solve}, "finish": {&l.Finish},
	}
	for _, timeout := range s.timeouts {
		stage, value, ok := strings.Cut(timeout, "=")
		if !ok {
			stage, value = "", timeout
		}
		fields := stages[stage]
		if len(fields) == 0 || (ok && stage == "") {
			return l, Usage(fmt.Errorf("--stage-timeout: %q is none of prepare, compile, solve, finish", stage))
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return l, Usage(fmt.Errorf("--stage-timeout: %q is not a positive duration, as in 20m", value))
		}
		for _, field := range fields {
			*field = d
		}
	}
	return l, nil
}
