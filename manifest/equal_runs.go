package manifest

import (
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
)

// usualSchedule stands for that of a prior that is not known: a plan draws noise with every schedule or with none.
const usualSchedule = "linear:0.0001:0.02:1000"

// EqualRuns names the methods and tasks whose several runs are all equal, because their settings draw no noise, in one line with the remedy, or returns "".
func (c Catalogue) EqualRuns(s *Spec) string {
	var equal []string
	for _, t := range s.Tasks {
		e := s.Effective(t)
		for _, e.Method = range s.methodsOf(t) {
			if name := e.Method + " in " + printable(e.Name); e.Runs > 1 && !slices.Contains(equal, name) && !c.random(method.RequestOf(e)) {
				equal = append(equal, name)
			}
		}
	}
	if len(equal) == 0 {
		return ""
	}
	return fmt.Sprintf("all runs are equal of %s: the settings draw no noise; set runs 1, or settings with noise, of ddiff data_step exact and noise full",
		strings.Join(equal, ", "))
}

// random reports whether runs with these settings differ, or may differ: the settings are wrong.
func (c Catalogue) random(r method.Request) bool {
	schedule, err := prior.ParseSchedule(usualSchedule)
	if c.Prior != nil {
		schedule, err = c.Prior.Schedule, nil
	}
	if err != nil {
		return true
	}
	m, err := c.Methods.Find(r.Method)
	if err != nil {
		return true
	}
	settings, err := c.Methods.Resolve(r, schedule.Steps())
	if err != nil {
		return true
	}
	steps, err := method.Planned(m, settings, schedule, largestImage)
	return err != nil || m.Info().Random(steps)
}
