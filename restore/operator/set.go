package operator

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"ddiff/internal/failure"
	"ddiff/internal/restore/axis"
	"ddiff/restore/parameter"
)

// Errors of making an operator or its parameters.
var (
	// ErrTask: the set has no task of this name.
	ErrTask = failure.New(failure.Input, "unknown task")
	// ErrParam: a parameter is unknown or out of its range.
	ErrParam = parameter.ErrInvalid
	// ErrShape: the image size does not suit the operator.
	ErrShape = failure.New(failure.Input, "image size does not suit the operator")
)

// Set holds definitions in the order of tables and reports. An empty Set stands for [Builtin].
type Set []Definition

// task is a built-in task.
type task struct {
	name   string // in campaign files and results; a part of identities
	define func() Definition
}

// builtin lists the tasks of the program: the eight of the paper in the order of its tables, and then the others.
func builtin() []task {
	return []task{
		{SuperResolution, superResolution},
		{InpaintBox, inpaintBox},
		{InpaintRandom, inpaintRandom},
		{GaussianDeblur, gaussianDeblur},
		{MotionDeblur, motionDeblur},
		{PhaseRetrieval, phaseRetrieval},
		{NonlinearDeblur, nonlinearDeblur},
		{HDR, hdr},
		{Denoise, denoise},
		{JPEG, jpegTask},
		{Inpaint, inpaintOwn},
		{SuperResolutionArea, superResolutionArea},
		{Colorize, colorize},
		{Demosaic, demosaic},
	}
}

// definition is that of the task, with its name.
func (t task) definition() Definition {
	d := t.define()
	d.Name = t.name
	return d
}

// Builtin returns all tasks of the program.
func Builtin() Set {
	var out Set
	for _, t := range builtin() {
		out = append(out, t.definition())
	}
	return out
}

// Paper returns the eight tasks of the paper in the order of its tables.
func Paper() Set { return Builtin()[:8] }

// Tasks lists the definitions, those of [Builtin] for an empty set.
func (s Set) Tasks() []Definition {
	if len(s) == 0 {
		return Builtin()
	}
	return s
}

// Sensitive lists the names of the tasks with [Definition.Sensitive].
func (s Set) Sensitive() []string {
	var out []string
	for _, d := range s.Tasks() {
		if d.Sensitive {
			out = append(out, d.Name)
		}
	}
	return out
}

// Names lists the names of the tasks.
func (s Set) Names() []string {
	var out []string
	for _, d := range s.Tasks() {
		out = append(out, d.Name)
	}
	return out
}

// find makes no definition but the one that is looked for.
func (s Set) find(name string) (Definition, error) {
	for _, d := range s {
		if d.Name == name {
			return d, nil
		}
	}
	for _, t := range builtin() {
		if len(s) == 0 && t.name == name {
			return t.definition(), nil
		}
	}
	return Definition{}, fmt.Errorf("%w %q: see ddiff tasks", ErrTask, name)
}

// Known returns the definition of a task, the zero Definition for an unknown one.
func (s Set) Known(name string) Definition {
	d, _ := s.find(name)
	return d
}

// Definition returns the definition of a task; with given, that of items that have a mask or a kernel from a file. It returns ErrTask.
func (s Set) Definition(task string, given bool) (Definition, error) {
	d, err := s.find(task)
	if err == nil && given && d.Given != nil {
		return *d.Given, nil
	}
	return d, err
}

// Label returns the task's name for people, and the name itself for an unknown task.
func (s Set) Label(name string) string { return cmp.Or(s.Known(name).Label, name) }

// Parameters returns the given parameters of a task with defaults for the missing ones. It
// returns ErrTask for an unknown task and ErrParam for an unknown name or a value out of range.
func (s Set) Parameters(name string, given map[string]float64) (map[string]float64, error) {
	_, p, err := s.resolve(name, given)
	return p, err
}

// resolve returns the definition of a task and its complete parameters.
func (s Set) resolve(name string, given map[string]float64) (Definition, map[string]float64, error) {
	d, err := s.find(name)
	if err != nil {
		return d, nil, err
	}
	p, err := d.Parameters.Complete(given)
	if err != nil && d.given {
		name += " with a kernel" // whose parameters are others
	}
	if err != nil {
		return d, nil, fmt.Errorf("task %s: %w", name, err)
	}
	return d, p, nil
}

// maxDense is the largest number of elements of an operator's constant matrices: those of 8192×8192 pixels for every task,
// of which one copy takes 0.8 GB.
const maxDense = 201_326_592 // 1.5·2·8192²

// Constants returns the number of elements of the constant matrices for images of one shape, see [Definition.Dense]. It is 0 for the zero Definition.
func (d Definition) Constants(image Shape) float64 {
	h, w := float64(image.Height), float64(image.Width)
	if d.Long && max(h, w) > axis.MaxDense {
		return 0
	}
	return d.Dense * (h*h + w*w)
}

// imageChannels returns the channels of the image whose measurement has the given ones.
func (d Definition) imageChannels(measured int) int {
	if d.Grey && measured == 1 {
		return colours
	}
	return measured
}

// smallestSide is the least side of an image.
const smallestSide = 8

// New makes the operator of a task for images of one shape. Missing parameters have their
// default. It returns ErrTask, ErrParam, and ErrShape unless height and width are even, at
// least 8 and suit the task.
func (s Set) New(name string, params map[string]float64, image Shape) (*Operator, error) {
	d, p, err := s.resolve(name, params)
	if err != nil {
		return nil, err
	}
	if image.Channels < 1 || image.Height < smallestSide || image.Width < smallestSide || image.Height%2 != 0 || image.Width%2 != 0 {
		return nil, fmt.Errorf("task %s: %w: %d×%d, both sides must be even and at least 8", name, ErrShape, image.Width, image.Height)
	}
	if d.Grey && image.Channels != colours {
		return nil, fmt.Errorf("task %s: %w: images have %d channels, the task needs red, green and blue", name, ErrShape, image.Channels)
	}
	if elements := d.Constants(image); elements > maxDense {
		return nil, fmt.Errorf("task %s: %w: %d×%d needs constant matrices of %.0f million elements, at most %d million are allowed; use --fit center_crop or resize",
			name, ErrShape, image.Width, image.Height, elements/1e6, maxDense/1_000_000)
	}
	e, err := d.Build(image, p)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", name, err)
	}
	if e.Measurement == nil {
		e.Measurement = image.Dims(1)[1:]
	}
	if d.Own == nil && e.Range == nil {
		e.Range = &Range{-1, 1} // that of images
	}
	o := &Operator{
		Task: name, Params: p, Image: image, Measurement: e.Measurement, Definition: d, expression: e,
		svd: sync.OnceValues(func() (*SVD, error) {
			if d.SVD == nil {
				return nil, ErrNoSVD
			}
			return d.SVD(image, p)
		}),
	}
	o.bytes = sync.OnceValues(o.countBytes)
	return o, nil
}

// ImageShape returns the shape of the image that a stored measurement [C, h, w] belongs to. It
// returns ErrTask, ErrParam, and ErrShape when no image has such a measurement.
func (s Set) ImageShape(name string, params map[string]float64, measurement []int) (Shape, error) {
	d, p, err := s.resolve(name, params)
	if err != nil {
		return Shape{}, err
	}
	if d.Own != nil {
		return d.Own.imageShape(name, p, measurement)
	}
	if len(measurement) != 3 {
		return Shape{}, fmt.Errorf("task %s: %w: a measurement of shape %v, want [channels, rows, columns]", name, ErrShape, measurement)
	}
	if channelsLast(measurement) {
		return Shape{}, fmt.Errorf("task %s: %w: a measurement of shape %v, want [channels, rows, columns]%s", name, ErrShape, measurement, channelsFirst)
	}
	image := Shape{d.imageChannels(measurement[0]), measurement[1], measurement[2]}
	if d.ImageSide != nil {
		image.Height, image.Width = d.ImageSide(image.Height, p), d.ImageSide(image.Width, p)
	}
	op, err := s.New(name, params, image)
	if err != nil {
		return Shape{}, err
	}
	if !slices.Equal(op.Measurement, measurement) {
		return Shape{}, fmt.Errorf("task %s: %w: no image has a measurement of shape %v", name, ErrShape, measurement)
	}
	return image, nil
}
