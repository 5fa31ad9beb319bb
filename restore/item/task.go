package item

import (
	_ "embed" // TaskSource
	"errors"
	"maps"

	"ddiff/restore/parameter"
)

// TaskSource is this file, whose comments describe the fields of campaign files.
//
//go:embed task.go
var TaskSource string

// Task is one task, with the settings of its restorations. Tasks of campaigns are plain names, or mappings when something differs from the campaign.
// A list in place of a value of Params, Sigma, Photons, Steps or Solver stands for one task per value. A cell of a campaign, and a picture, is a
// task with one method and one run.
type Task struct {
	// Name is a task of the program, such as "super_resolution". With Operator it is the name of the task in results, at most
	// 40 characters of [a-z0-9_-]; default: that of the file, see OperatorName.
	Name string `json:"name"`
	// Operator is the ONNX file of an operator that is not built in, relative to the campaign file. Empty: Name is built in.
	Operator string `json:"operator,omitempty"`
	// Params are the operator's parameters. Missing parameters have the operator's defaults.
	Params map[string]float64 `json:"params,omitempty"`
	// Sigma is the measurement noise, as in Spec. Nil means the campaign's.
	Sigma *Sigma `json:"sigma,omitempty"`
	// Photons is the number of photons of a white pixel, as in Spec. Nil means the campaign's.
	Photons *float64 `json:"photons,omitempty"`
	// Steps is the number of solver steps, as in Spec. Zero means the campaign's.
	Steps int `json:"steps,omitempty"`
	// Runs is the number of solutions per measurement, as in Spec. Zero means the campaign's.
	Runs int `json:"runs,omitempty"`
	// Solver replaces parameters of the preset and of the campaign.
	Solver parameter.Values `json:"solver,omitzero"`
	// Methods are the methods that solve the task, a part of the campaign's. Empty: all of them.
	Methods []string `json:"methods,omitempty"`
	// Mask and Kernel are files, relative to the campaign file, that replace the operator's draws for all rows without a mask or
	// kernel of their own. Dataset must then have none.
	Mask   string `json:"mask,omitempty"`
	Kernel string `json:"kernel,omitempty"`

	// The settings of a cell, of which campaign files have one for all tasks.

	Method, Preset string `json:"-"`
	// Choice is [Item.Choice].
	Choice string `json:"-"`
	// Choose sets Steps, Solver and Choice when Sigma, Params and the size of the image are known. Nil: nothing depends on them.
	Choose func(t *Task, width, height int) `json:"-"`
	// Estimated: Sigma was estimated.
	Estimated bool   `json:"-"`
	Seed      uint64 `json:"-"`
	Run       int    `json:"-"`
	// Tile and Overlap are the tiles of larger images, in pixels, see [Item.Tile]. 0: none.
	Tile    int `json:"-"`
	Overlap int `json:"-"`
	// Precision of the score network, see [Item.Precision].
	Precision parameter.Precision `json:"-"`
	// KeepStates is [Item.KeepStates], KeepObserved [Item.KeepObserved] of items with a mask.
	KeepStates   string `json:"-"`
	KeepObserved bool   `json:"-"`
}

// CheckPhotons returns an error for photons that a measurement cannot have. picture: it is one from black to white.
func (t Task) CheckPhotons(picture bool) error {
	switch {
	case t.Photons == nil:
		return nil
	case !picture:
		return errors.New("the measurement of task " + t.Name + " is no picture from black at -1 to white at 1, so that photons have no meaning; remove photons, or give them to other tasks only")
	case t.Estimated || *t.Sigma == SigmaAuto:
		return errors.New("has photons and sigma auto, which estimates noise without photons; give sigma as a number, or remove photons")
	}
	return nil
}

// Item returns the item of a cell at a working size, without its files and the solver's settings. Without a size it is that of a failure.
func (t Task) Item(width, height int) Item {
	it := Item{
		Width: width, Height: height, Task: t.Name, Params: maps.Clone(t.Params), SigmaEstimated: t.Estimated || *t.Sigma == SigmaAuto, Seed: t.Seed, Run: t.Run,
		Method: t.Method, Preset: t.Preset, Choice: t.Choice, Precision: t.Precision, KeepStates: t.KeepStates,
	}
	for name, x := range it.Params {
		it.Params[name] = positiveZero(x)
	}
	if *t.Sigma != SigmaAuto {
		it.Sigma = positiveZero(float64(*t.Sigma))
	}
	if t.Photons != nil {
		it.Photons = *t.Photons
	}
	if t.Tile > 0 && max(width, height) > t.Tile {
		it.Tile, it.Overlap = t.Tile, t.Overlap
	}
	return it
}
