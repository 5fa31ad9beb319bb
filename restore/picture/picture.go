package picture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/restore/item"
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
	// Form is that of Mask and Kernel.
	Form item.DrawForm
	// Task has the settings of its restoration, with one method, one run and a Sigma. Params that are missing have their defaults, or are read from the file; a Sigma that is
	// auto is estimated; Precision, if it is empty, is that of the engine.
	Task item.Task
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
	t := p.Task
	stated, err := look.Stated(t.Name, y)
	if err != nil {
		return it, fmt.Errorf("read %s: %w", p.Measurement.name(), err)
	}
	image, err := look.Shape(t.Name, t.Params, y)
	if err != nil {
		return it, fmt.Errorf("read %s: %w", p.Measurement.name(), err)
	}
	if *t.Sigma == item.SigmaAuto {
		noisy := job.Noisy{Task: t.Name, Params: t.Params, Own: c.Operators.Known(t.Name).Own != nil, Width: image.Width, Height: image.Height, Measurement: y, Mask: mask, Form: p.Form, Range: p.Range}
		sigma, err := look.Sigma(noisy)
		if err != nil {
			return it, p.failed(fmt.Errorf("sigma auto: %w", err))
		}
		t.Sigma, t.Estimated = new(item.Sigma(sigma)), true
	}
	if t.Params, err = stated.Complete(t.Params); err != nil {
		return it, p.failed(err)
	}
	if t.Choose != nil {
		t.Choose(&t, image.Width, image.Height)
	}
	solver, op, err := c.Methods.Prepare(t, c.Operators, kernelSource != nil, &c.Prior.Description, image)
	if err := cmp.Or(t.CheckPhotons(c.Operators.Known(t.Name).Photons()), err); err != nil {
		return it, p.failed(err)
	}
	t.Params = op.Params
	it = t.Item(image.Width, image.Height)
	if it.Solver, err = json.Marshal(solver); err != nil {
		return it, err
	}
	it.Name, it.Measurement, it.MeasurementRange, it.Mask, it.Kernel, it.OwnKernel = p.Name, measurement, p.Range, maskSource, kernelSource, op.IsGiven()
	it.DrawForm = p.Form
	it.Fit, it.Prior, it.KeepObserved = item.FitCenterCrop, c.Prior.SHA256, t.KeepObserved && maskSource != nil
	if own := op.Own; own != nil {
		it.Operator = &item.Source{Path: own.Path, SHA256: own.SHA256}
	}
	err = it.Identify()
	return it, err
}

// failed is an error that follows from the settings of a picture.
func (p Picture) failed(err error) error {
	return fmt.Errorf("task %s, method %s: %w", p.Task.Name, p.Task.Method, err)
}
