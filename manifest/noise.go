package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sigma is the noise level of a measurement in a campaign or a row: the standard deviation in units of y, 0..1, or SigmaAuto.
type Sigma float64

// SigmaAuto is the word auto: the level is estimated from each stored measurement.
const SigmaAuto Sigma = -math.MaxFloat64

const sigmaWord = "auto"

// ParseSigma reads a finite number or the word auto. It does not check the range.
func ParseSigma(text string) (Sigma, error) {
	if strings.TrimSpace(text) == sigmaWord {
		return SigmaAuto, nil
	}
	x, err := parseNumber(text)
	if err != nil {
		return 0, fmt.Errorf("%w, and not auto", err)
	}
	return Sigma(x), nil
}

// String returns the number, or auto.
func (s Sigma) String() string {
	if s == SigmaAuto {
		return sigmaWord
	}
	return strconv.FormatFloat(float64(s), 'g', -1, 64)
}

// MarshalJSON writes the number, or the text "auto".
func (s Sigma) MarshalJSON() ([]byte, error) {
	if s == SigmaAuto {
		return json.Marshal(sigmaWord)
	}
	return json.Marshal(float64(s))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Sigma) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+sigmaWord+`"` {
		*s = SigmaAuto
		return nil
	}
	var x float64
	err := json.Unmarshal(data, &x)
	*s = Sigma(x)
	return err
}

// check accepts the noise levels of a spec and of a list's column.
func (s Sigma) check() error {
	if x := float64(s); s != SigmaAuto && !(x >= 0 && x <= 1) {
		return fmt.Errorf("%v is out of range, want 0 to 1 (in units of y)", x)
	}
	return nil
}

// Estimate is the estimated noise level of a row's measurement in units of y, or the reason why there is none, with its remedy.
type Estimate struct {
	Sigma float64
	Err   error
}

// EstimatedTasks returns the effective tasks of a row with the noise level auto, in the order of [Probe.Estimates].
func EstimatedTasks(row Row, spec *Spec) []TaskSpec {
	return slices.DeleteFunc(rowTasks(row, spec), func(t TaskSpec) bool { return *t.Sigma != SigmaAuto })
}

// estimateSigma replaces the word auto by the estimate for the row's measurement.
func (p *place) estimateSigma(row Row, estimates []Estimate) error {
	if *p.task.Sigma != SigmaAuto {
		return nil
	}
	if row.Measurement == "" {
		return errSimulated
	}
	if p.estimate >= len(estimates) {
		return errors.New("sigma auto: the measurement has no estimate; give sigma as a number")
	}
	e := estimates[p.estimate]
	if e.Err != nil {
		return fmt.Errorf("sigma auto: %w", e.Err)
	}
	if err := Sigma(e.Sigma).check(); err != nil {
		return fmt.Errorf("sigma auto: %w; give sigma as a number", err)
	}
	p.task.Sigma = new(Sigma(e.Sigma))
	return nil
}

// errSimulated is the error of the noise level auto without a stored measurement.
var errSimulated = errors.New("sigma auto needs a stored measurement; a simulated one needs a number")

// auto checks task i if it has the noise level auto.
func (c *checker) auto(i int) {
	s := c.spec
	t, field := s.Effective(s.Tasks[i]), "sigma"
	if *t.Sigma != SigmaAuto {
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
		e := c.spec.Effective(t)
		if e.Photons != nil && *e.Sigma == SigmaAuto {
			c.add(taskField(i), errPhotonsAuto)
		}
		if d, known := c.task(t.Name); e.Photons == nil || known && d.Photons() || !known && t.Operator == "" {
			continue
		}
		field := "photons"
		if t.Photons != nil {
			field = taskField(i) + ".photons"
		}
		c.add(field, errPhotons(t.Name))
	}
}

// errPhotonsAuto is the error of photons beside an estimated noise level.
var errPhotonsAuto = errors.New("has photons and sigma auto, which estimates noise without photons; give sigma as a number, or remove photons")

// errPhotons is the error of photons for a task whose measurement is no picture.
func errPhotons(task string) error {
	return errors.New("the measurement of task " + task + " is no picture from black at -1 to white at 1, so that photons have no meaning; remove photons, " +
		"or give them to other tasks only")
}
