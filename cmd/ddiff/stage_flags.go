package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ddiff/gpuworker"
)

// stageFlags are the limits of a worker's stages.
type stageFlags struct {
	timeouts    []string // [STAGE=]DURATION
	memoryShare float64
}

func (s *stageFlags) add(f *pflag.FlagSet) {
	l := gpuworker.Limits{}.WithDefaults()
	f.StringArrayVar(&s.timeouts, "stage-timeout", nil, fmt.Sprintf("longest `[STAGE=]DURATION` of one stage or all, after which the process ends with exit code %d;"+
		" repeatable (default prepare=%v, compile=%v, solve=%v, finish=%v)", exitHung, l.Prepare, l.Compile, l.Solve, l.Finish))
	f.Float64Var(&s.memoryShare, "memory-share", gpuworker.DefaultSolveShare, "largest `share` of the machine's memory for solving a batch, by an estimate; an image that needs more fails")
}

// limits parses the flags. Later flags override earlier ones.
func (s *stageFlags) limits() (gpuworker.Limits, error) {
	var l gpuworker.Limits
	if !(s.memoryShare >= 0 && s.memoryShare <= 1) {
		return l, usage(fmt.Errorf("--memory-share: %v is not between 0 and 1; use 0.5 for half of the memory", s.memoryShare))
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
			return l, usage(fmt.Errorf("--stage-timeout: %q is none of prepare, compile, solve, finish", stage))
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return l, usage(fmt.Errorf("--stage-timeout: %q is not a positive duration, as in 20m", value))
		}
		for _, field := range fields {
			*field = d
		}
	}
	return l, nil
}
