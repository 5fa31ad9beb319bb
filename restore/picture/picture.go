package picture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/restore/item"
	"ddiff/restore/job"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// MaxBytes is the size limit of a file, in bytes.
const MaxBytes = 1 << 30

// File is a file of a picture: its bytes, or the local path from which they are read. The path is part of passports.
type File struct {
	Path string
	Data []byte // nil: those of the file
}

// name is the path without secrets, for messages.
func (f File) name() string { return redact.Address(f.Path) }

// Picture is a degraded picture, a picture file or a .npy array, with the settings of its restoration.
type Picture struct {
	// Name is the picture's in messages and in the passport.
	Name        string
	Measurement File
	// Original is the file of which the measurement is a part, and whose compression it has; the zero File for a whole picture.
	Original File
	// Mask and Kernel are those of the task; the zero File is none.
	Mask, Kernel File
	// Range has the values of black and white in an array, or in the samples of a picture. Nil: those of the task.
	Range *item.ValueRange
	Settings
}

// Settings are those of one restoration.
type Settings struct {
	// Task is the degradation, Params the parameters of its operator; missing ones have their defaults, or are read from the file.
	Task   string
	Params map[string]float64
	// Sigma is the standard deviation of the noise, with black at -1 and white at 1. Estimate: it is estimated from the picture, or was if it is not 0.
	Sigma    float64
	Estimate bool
	// Photons is the mean photon count of a white pixel, 0 for none.
	Photons float64

	Method, Preset string
	// Steps replaces the preset's number of steps unless it is 0, and Solver values of its parameters.
	Steps  int
	Solver map[string]parameter.Value
	// Choice is the reason for method and settings, for the passport.
	Choice string
	// Choose changes Steps, Solver and Choice as soon as Sigma, Params and the image's shape are known. Optional.
	Choose func(s *Settings, image operator.Shape)

	Seed uint64
	Run  int
	// Tile and Overlap are the tiles of larger pictures, in pixels. 0: none, but for [Config.Large].
	Tile, Overlap int
	// Precision of the score network. Empty: that of the engine.
	Precision parameter.Precision
	// KeepStates names the steps after which x_t is kept, see [item.KeptStates]; those of the first picture of a batch count.
	KeepStates string
	// KeepObserved puts the observed pixels of a picture with a mask into the restored one.
	KeepObserved bool
}

// files has the bytes and digests of the last files that were read: pictures of one file, and one mask for all, are read and digested once.
type files map[string]read

// read is a file that was read, with the File that asked for it.
type read struct {
	of     File
	data   []byte
	source *item.Source
}

// read reads a file and names it. It returns nil for the zero File.
func (f files) read(role string, from File) ([]byte, *item.Source, error) {
	if from.Path == "" && from.Data == nil {
		return nil, nil, nil
	}
	if last, ok := f[role]; ok && last.of.Path == from.Path && bytes.Equal(last.of.Data, from.Data) {
		return last.data, last.source, nil
	}
	data := from.Data
	if data == nil {
		var err error
		if data, err = regular.Read(from.Path, MaxBytes); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", from.name(), err)
		}
	}
	r := read{from, data, &item.Source{Path: cmp.Or(from.Path, role), SHA256: regular.SHA256(data)}}
	f[role] = r
	return r.data, r.source, nil
}

// Get returns the bytes of the file that was read from a path.
func (f files) Get(_ context.Context, path string) ([]byte, error) {
	for _, r := range f {
		if r.source.Path == path {
			return r.data, nil
		}
	}
	return nil, fmt.Errorf("%s was not read", redact.Address(path))
}

// Item reads the files of a picture and returns the unit of work that it is, whose identity is that in a campaign with the same settings. It computes
// nothing, and needs of the configuration no runtime.
func (c Config) Item(p Picture) (item.Item, error) { return c.item(p, files{}) }

func (c Config) item(p Picture, f files) (it item.Item, err error) {
	y, measurement, err := f.read("measurement", p.Measurement)
	if err != nil {
		return it, err
	}
	if len(y) == 0 {
		return it, fmt.Errorf("read %s: is an empty file", p.Measurement.name())
	}
	mask, maskSource, err := f.read("mask", p.Mask)
	if err != nil {
		return it, err
	}
	_, kernelSource, err := f.read("kernel", p.Kernel)
	if err != nil {
		return it, err
	}
	look := job.Look{Operators: c.Operators, Card: &c.Prior.Card}
	stated, err := look.Stated(p.Task, y)
	if err != nil {
		return it, fmt.Errorf("read %s: %w", p.Measurement.name(), err)
	}
	image, err := look.Shape(p.Task, p.Params, y)
	if err != nil {
		return it, fmt.Errorf("read %s: %w", p.Measurement.name(), err)
	}
	s := p.Settings
	if s.Estimate && s.Sigma == 0 {
		noisy := job.Noisy{Task: s.Task, Params: s.Params, Own: c.Operators.Known(s.Task).Own != nil, Width: image.Width, Height: image.Height, Measurement: y, Mask: mask, Range: p.Range}
		if s.Sigma, err = look.Sigma(noisy); err != nil {
			return it, p.failed(fmt.Errorf("sigma auto: %w", err))
		}
	}
	if s.Params, err = stated.Complete(s.Params); err != nil {
		return it, p.failed(err)
	}
	if s.Choose != nil {
		s.Choose(&s, image)
	}
	solver, op, err := c.resolve(s, kernelSource != nil, image)
	if err != nil {
		return it, p.failed(err)
	}
	raw, err := json.Marshal(solver)
	if err != nil {
		return it, err
	}
	it = item.Item{
		Name: p.Name, Measurement: measurement, MeasurementRange: p.Range, Mask: maskSource, Kernel: kernelSource, OwnKernel: op.IsGiven(),
		Width: image.Width, Height: image.Height, Fit: item.FitCenterCrop,
		Task: s.Task, Params: maps.Clone(op.Params), Sigma: item.PositiveZero(s.Sigma), SigmaEstimated: s.Estimate, Photons: s.Photons, Seed: s.Seed, Run: s.Run,
		Method: s.Method, Solver: raw, Prior: c.Prior.SHA256, Precision: s.Precision, Preset: s.Preset, Choice: s.Choice,
		KeepObserved: s.KeepObserved && maskSource != nil, KeepStates: s.KeepStates,
	}
	for name, x := range it.Params {
		it.Params[name] = item.PositiveZero(x)
	}
	if own := op.Own; own != nil {
		it.Operator = &item.Source{Path: own.Path, SHA256: own.SHA256}
	}
	if s.Tile > 0 && max(it.Width, it.Height) > s.Tile {
		it.Tile, it.Overlap = s.Tile, s.Overlap
	}
	err = it.Identify()
	return it, err
}

// failed is an error that follows from the settings of a picture.
func (p Picture) failed(err error) error {
	return fmt.Errorf("task %s, method %s: %w", p.Task, p.Method, err)
}

// errPhotons is the error of photons beside an estimated noise level.
var errPhotons = errors.New("photons and an estimated sigma: the estimate is of noise without photons; give sigma as a number, or remove photons")

// resolve returns the complete settings of the method, and the operator.
func (c Config) resolve(s Settings, kernel bool, image operator.Shape) (out method.Settings, op *operator.Operator, err error) {
	d, err := c.Operators.Definition(s.Task, kernel)
	if err != nil {
		return out, nil, err
	}
	if s.Photons > 0 && s.Estimate {
		return out, nil, errPhotons
	}
	if s.Photons > 0 && !d.Photons() {
		return out, nil, fmt.Errorf("task %s: its measurement is no picture from black to white, so that photons have no meaning; remove photons", s.Task)
	}
	if err := c.Methods.Serves(s.Method, d, &c.Prior.Card); err != nil {
		return out, nil, err
	}
	sigma := s.Sigma
	if s.Photons > 0 {
		sigma = operator.Noise{Sigma: s.Sigma, Photons: s.Photons}.Level()
	}
	out, err = c.Methods.Resolve(method.Request{Method: s.Method, Preset: s.Preset, Task: s.Task, Sigma: &sigma, Steps: s.Steps, Values: s.Solver}, c.Prior.Schedule.Steps())
	if err != nil {
		return out, nil, err
	}
	op, err = operator.Set{d}.New(s.Task, s.Params, image)
	return out, op, err
}
