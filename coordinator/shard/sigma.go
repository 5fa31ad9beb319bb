package shard

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/noiselevel"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// giveNumber is the remedy for a noise level that cannot be estimated.
const giveNumber = "give sigma as a number"

// unestimated returns the reason why the noise level of a task cannot be estimated from a measurement, or "".
func unestimated(d operator.Definition) string {
	switch {
	case d.NotPicture:
		return "its measurement is no picture"
	case d.Coloured:
		return "the noise of its measurement is not white"
	}
	return ""
}

// estimates returns the noise levels of a measurement for tasks with the noise level auto. maskOf returns the bytes of a task's mask, or nil.
func (s *Sharder) estimates(tasks []manifest.TaskSpec, p *manifest.Probe, measurement []byte, maskOf func(manifest.TaskSpec) []byte) []manifest.Estimate {
	s.estimating.Lock()
	defer s.estimating.Unlock()
	out := make([]manifest.Estimate, len(tasks))
	for i, t := range tasks {
		same := func(other manifest.TaskSpec) bool {
			return other.Name == t.Name && other.Mask == t.Mask && maps.Equal(other.Params, t.Params)
		}
		if k := slices.IndexFunc(tasks, same); k < i {
			out[i] = out[k] // they differ in their settings
			continue
		}
		out[i].Sigma, out[i].Err = s.estimate(t, p, measurement, maskOf(t))
	}
	return out
}

// estimate returns the noise level of a measurement, in units of y.
func (s *Sharder) estimate(t manifest.TaskSpec, p *manifest.Probe, measurement, mask []byte) (float64, error) {
	operators := s.cfg.Catalogue.Operators
	for _, d := range operators.Tasks() {
		if reason := unestimated(d); d.Name == t.Name && reason != "" {
			return 0, fmt.Errorf("task %s: %s; %s", t.Name, reason, giveNumber)
		}
	}
	y, err := s.picture(t, p, measurement)
	if err != nil {
		return 0, fmt.Errorf("read the measurement: %w", err)
	}
	if operators.Known(t.Name).Input == "mask" {
		if mask == nil {
			return 0, fmt.Errorf("task %s: the mask of the measurement is missing; give it, or sigma as a number", t.Name)
		}
		d, err := operator.ReadDraw("mask", mask)
		if err != nil {
			return 0, fmt.Errorf("read the mask: %w", err)
		}
		op, err := operators.New(t.Name, t.Params, operator.Shape{Channels: s.cfg.Prior.Card.Channels, Height: p.Height, Width: p.Width})
		if err != nil {
			return 0, err
		}
		if op.ScalesMask() {
			if d, err = op.ScaleMask(d, y.Width, y.Height); err != nil {
				return 0, err
			}
		}
		if !slices.Equal(d.Dims, []int{y.Height, y.Width}) {
			return 0, fmt.Errorf("the mask has the shape %v, the measurement %d×%d; give a mask of its size", d.Dims, y.Height, y.Width)
		}
		y.Observed = d.Data
	}
	if t.Name == operator.Demosaic {
		y = y.Mosaic()
	}
	level, err := noiselevel.Estimate(y)
	if err != nil {
		return 0, fmt.Errorf("%w; %s", err, giveNumber)
	}
	return level, nil
}

// picture returns a measurement in the range of its operator.
func (s *Sharder) picture(t manifest.TaskSpec, p *manifest.Probe, data []byte) (y noiselevel.Picture, err error) {
	if !raster.IsNPY(data) {
		pic, err := raster.DecodePicture(data)
		if err != nil {
			return y, err
		}
		levels := math.Exp2(float64(pic.Bits)) - 1
		return noiselevel.Picture{Channels: pic.Image.Channels, Height: pic.Image.Height, Width: pic.Image.Width, Pix: pic.Image.Pix, Step: 2 / levels}, nil
	}
	if t.Operator != "" {
		return y, errors.New("an array of an operator file may be no picture; " + giveNumber)
	}
	a, err := raster.DecodeMeasurement(data)
	if err != nil {
		return y, err
	}
	op, err := s.cfg.Catalogue.Operators.New(t.Name, t.Params, operator.Shape{Channels: s.cfg.Prior.Card.Channels, Height: p.Height, Width: p.Width})
	if err != nil {
		return y, err
	}
	if len(a.Shape) != 3 || !slices.Equal(a.Shape, op.Measurement) {
		return y, fmt.Errorf("its shape is %v, the task needs %v", a.Shape, op.Measurement)
	}
	if r := s.cfg.Spec.Dataset.MeasurementRange; r != nil {
		if err := op.Rescale(a.Data, operator.Range{Low: r[0], High: r[1]}); err != nil {
			return y, err
		}
	}
	return noiselevel.Picture{Channels: a.Shape[0], Height: a.Shape[1], Width: a.Shape[2], Pix: a.Data}, nil
}
