package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/restore/item"
)

// ParseSigma reads a finite number or the word auto. It does not check the range.
func ParseSigma(text string) (item.Sigma, error) {
	if strings.TrimSpace(text) == item.SigmaAuto.String() {
		return item.SigmaAuto, nil
	}
	x, err := parseNumber(text)
	if err != nil {
		return 0, fmt.Errorf("%w, and not auto", err)
	}
	return item.Sigma(x), nil
}

// Estimate is the estimated noise level of a row's measurement in units of y, or the reason why there is none, with its remedy.
type Estimate struct {
	Sigma float64
	Err   error
}

// EstimatedTasks returns the effective tasks of a row with the noise level auto, in the order of [Probe.Estimates].
func EstimatedTasks(row Row, spec *Spec) []item.Task {
	return slices.DeleteFunc(rowTasks(row, spec), func(t item.Task) bool { return *t.Sigma != item.SigmaAuto })
}

// estimateOf returns the first of the estimates for the measurement of a row.
func estimateOf(row Row, estimates []Estimate) (item.Sigma, error) {
	if row.Measurement == "" {
		return 0, errSimulated
	}
	if len(estimates) == 0 {
		return 0, errors.New("sigma auto: the measurement has no estimate; give sigma as a number")
	}
	if err := estimates[0].Err; err != nil {
		return 0, fmt.Errorf("sigma auto: %w", err)
	}
	sigma := item.Sigma(estimates[0].Sigma)
	if err := sigma.Check(); err != nil {
		return 0, fmt.Errorf("sigma auto: %w; give sigma as a number", err)
	}
	return sigma, nil
}

// errSimulated is the error of the noise level auto without a stored measurement.
var errSimulated = errors.New("sigma auto needs a stored measurement; a simulated one needs a number")

// auto checks task i if it has the noise level auto.
func (c *checker) auto(i int) {
	s := c.spec
	t, field := s.Effective(s.Tasks[i]), "sigma"
	if *t.Sigma != item.SigmaAuto {
		return
	}
	if s.Tasks[i].Sigma != nil {
		field = taskField(i) + ".sigma"
	}
	if reason := c.Operators.Known(t.Name).Unestimated(); reason != "" && t.Operator == "" {
		c.add(field, fmt.Errorf("auto does not suit task %s: %s; give a number", t.Name, reason))
	} else if !s.Dataset.Measurements && s.Dataset.withoutColumns() {
		c.add(field, errSimulated)
	}
}

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

func (c *checker) photons(field string, x *float64) {
	if x != nil {
		c.add(field, checkPhotons(*x))
	}
}

// photonsOf reports the tasks with photons whose measurement cannot have their noise.
func (c *checker) photonsOf() {
	for i, t := range c.spec.Tasks {
		d, known := c.task(t.Name)
		picture, field := known && d.Photons() || !known && t.Operator == "", "photons"
		if t.Photons != nil {
			field = taskField(i) + ".photons"
		} else if picture && t.Sigma != nil {
			field = taskField(i) + ".sigma"
		}
		c.add(field, c.spec.Effective(t).CheckPhotons(picture))
	}
}
