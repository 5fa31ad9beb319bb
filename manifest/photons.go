package manifest

import (
	"errors"
	"fmt"
)

// The range of numbers of photons.
const (
	minPhotons = 0.01
	maxPhotons = 1e9
)

// checkPhotons accepts the numbers of photons of a spec and of a list's column.
func checkPhotons(x float64) error {
	if !(x >= minPhotons && x <= maxPhotons) {
		return fmt.Errorf("%v is out of range, want %v to %v photons of a white pixel; leave it out for noise without photons", x, minPhotons, maxPhotons)
	}
	return nil
}

func (c *rangeChecker) photons(field string, x *float64) {
	if x == nil {
		return
	}
	if err := checkPhotons(*x); err != nil {
		c.add(field, err)
	}
}

// checkPhotons reports the tasks with photons whose measurement cannot have their noise.
func (s *Spec) checkPhotons(v Vocabulary) []*FieldError {
	var out []*FieldError
	for i, t := range s.Tasks {
		if e := s.Effective(t); e.Photons != nil && *e.Sigma == SigmaAuto {
			out = append(out, s.problem(fmt.Sprintf("tasks[%d]", i), errPhotonsAuto))
		}
		if can, known := v.Photons[t.Name]; s.Effective(t).Photons == nil || can || !known && (t.Operator == "" || v.Photons == nil) {
			continue
		}
		field := "photons"
		if t.Photons != nil {
			field = fmt.Sprintf("tasks[%d].photons", i)
		}
		out = append(out, s.problem(field, errPhotons(t.Name)))
	}
	return out
}

// errPhotonsAuto is the error of photons beside an estimated noise level.
var errPhotonsAuto = errors.New("has photons and sigma auto, which estimates noise without photons; give sigma as a number, or remove photons")

// errPhotons is the error of photons for a task whose measurement is no picture.
func errPhotons(task string) error {
	return errors.New("the measurement of task " + task + " is no picture from black at -1 to white at 1, so that photons have no meaning; remove photons, " +
		"or give them to other tasks only")
}
