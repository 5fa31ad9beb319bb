package operator

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/raster"
)

// Errors of making an operator or its parameters.
var (
	// ErrTask: there is no task of that name.
	ErrTask = errors.New("unknown task")
	// ErrParam: a parameter is unknown or out of its range.
	ErrParam = errors.New("wrong parameter")
	// ErrShape: the image size does not suit the operator.
	ErrShape = errors.New("image size does not suit the operator")
)

// Shape is the size of an image: channels, rows, columns.
type Shape struct{ Channels, Height, Width int }

// Dims is the shape of a batch of n images.
func (s Shape) Dims(n int) []int { return []int{n, s.Channels, s.Height, s.Width} }

// Size is the number of elements of one image.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

// length scales a length that is stated for 256 pixels.
func (s Shape) length(at256 float64) float64 {
	return at256 * float64(min(s.Height, s.Width)) / 256
}

// odd scales a kernel size that is stated for 256 pixels, to an odd number of pixels.
func (s Shape) odd(at256 float64) int {
	return 2*int(math.Round((s.length(at256)-1)/2)) + 1
}

// Draw is what varies from item to item: a mask or a kernel, as people store it.
type Draw struct {
	// Name is "mask" or "kernel".
	Name string
	// Dims is [H, W] for a mask of zeros and ones, [k, k] for a kernel that sums to 1.
	Dims []int
	Data []float32
}

// definition is one task's mathematics for one image shape.
type definition interface {
	// forward builds A(x); p is the batch of encoded draws, absent without them.
	forward(g *onnx.Graph, x, p onnx.Value) onnx.Value
	// measurement is the shape of y for one image.
	measurement() []int
}

// drawer is a definition with a random or given part.
type drawer interface {
	draw(s *noise.Stream) *Draw
	// check refuses a draw that a user supplied and that does not fit.
	check(d *Draw) error
	// parameter is the shape of one encoded draw.
	parameter() []int
	encode(d *Draw) []float32
}

// Operator is A for one task, one set of parameters and one image shape.
type Operator struct {
	// Task is the name, Params the complete parameters with defaults filled in.
	Task   string
	Params map[string]float64
	// Image and Measurement are the shapes of x and y for one item.
	Image       Shape
	Measurement []int

	def definition
	// masked: the encoded draw also weighs the data term.
	masked bool
}

// task ties a name to its parameters and its definition.
type task struct {
	name     string
	about    string
	defaults map[string]float64
	masked   bool
	make     func(s Shape, p map[string]float64) (definition, error)
}

// The task names.
const (
	SuperResolution = "super_resolution"
	InpaintBox      = "inpaint_box"
	InpaintRandom   = "inpaint_random"
	GaussianDeblur  = "gaussian_deblur"
	MotionDeblur    = "motion_deblur"
	PhaseRetrieval  = "phase_retrieval"
	NonlinearDeblur = "nonlinear_deblur"
	HDR             = "hdr"
)

// tasks in the order of the paper's tables.
func tasks() []task {
	return []task{
		superResolutionTask(), inpaintBoxTask(), inpaintRandomTask(), gaussianTask(),
		motionTask(), phaseTask(), nonlinearTask(), hdrTask(),
	}
}

// Info describes a task for people.
type Info struct {
	Name, About string
	// Defaults are the parameters and their default values.
	Defaults map[string]float64
}

// Tasks lists the tasks in the order of the paper's tables.
func Tasks() []Info {
	var out []Info
	for _, t := range tasks() {
		out = append(out, Info{Name: t.name, About: t.about, Defaults: t.defaults})
	}
	return out
}

// Parameters fills in the defaults of a task and refuses unknown names (ErrTask, ErrParam).
func Parameters(name string, given map[string]float64) (map[string]float64, error) {
	t, err := find(name)
	if err != nil {
		return nil, err
	}
	p := maps.Clone(t.defaults)
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if _, ok := p[k]; !ok {
			return nil, fmt.Errorf("task %s: %w %s: its parameters are %v", name, ErrParam, k, slices.Sorted(maps.Keys(p)))
		}
		p[k] = given[k]
	}
	return p, nil
}

func find(name string) (task, error) {
	for _, t := range tasks() {
		if t.name == name {
			return t, nil
		}
	}
	return task{}, fmt.Errorf("%w %q: see ddiff tasks", ErrTask, name)
}

// New makes the operator of a task for images of one shape. Parameters that are not given
// have their default. Height and width must be even.
func New(name string, params map[string]float64, s Shape) (*Operator, error) {
	t, err := find(name)
	if err != nil {
		return nil, err
	}
	p, err := Parameters(name, params)
	if err != nil {
		return nil, err
	}
	if s.Channels < 1 || s.Height < 8 || s.Width < 8 || s.Height%2 != 0 || s.Width%2 != 0 {
		return nil, fmt.Errorf("task %s: %w: %d×%d, both sides must be even and at least 8", name, ErrShape, s.Width, s.Height)
	}
	d, err := t.make(s, p)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", name, err)
	}
	return &Operator{Task: name, Params: p, Image: s, Measurement: d.measurement(), def: d, masked: t.masked}, nil
}

// MeasurementSize is the number of entries of y for one item.
func (o *Operator) MeasurementSize() int {
	n := 1
	for _, d := range o.Measurement {
		n *= d
	}
	return n
}

// MeasurementDims is the shape of y for n items.
func (o *Operator) MeasurementDims(n int) []int { return append([]int{n}, o.Measurement...) }

// ParameterDims is the shape of the encoded draws of n items, nil when there are none.
func (o *Operator) ParameterDims(n int) []int {
	if d, ok := o.def.(drawer); ok {
		return append([]int{n}, d.parameter()...)
	}
	return nil
}

// Draw makes the item's mask or kernel from its key; nil when the task has none.
func (o *Operator) Draw(key noise.Key) *Draw {
	if d, ok := o.def.(drawer); ok {
		return d.draw(noise.NewStream(key, noise.Operator))
	}
	return nil
}

// Encode turns a draw into the parameter of the expression. A draw that does not fit the
// operator is refused with ErrParam.
func (o *Operator) Encode(d *Draw) ([]float32, error) {
	def, ok := o.def.(drawer)
	if !ok {
		return nil, nil
	}
	if d == nil {
		return nil, fmt.Errorf("task %s: %w: the mask or kernel is missing", o.Task, ErrParam)
	}
	if err := def.check(d); err != nil {
		return nil, fmt.Errorf("task %s: %w", o.Task, err)
	}
	return def.encode(d), nil
}

// Forward builds A(x) for a batch x [N, C, H, W]; p is the batch of encoded draws.
func (o *Operator) Forward(g *onnx.Graph, x, p onnx.Value) onnx.Value {
	return o.def.forward(g, x, p)
}

// Weighted applies the data term's weights to a residual in the shape of y: unobserved
// pixels of an inpainting task do not count. Other tasks have no weights.
func (o *Operator) Weighted(g *onnx.Graph, r, p onnx.Value) onnx.Value {
	if o.masked {
		return g.Mul(r, p)
	}
	return r
}

// Baseline is the degraded image itself, what a restoration has to beat: y where it has the
// image's shape, its bicubic enlargement for super-resolution, and nil where y is not an
// image (phase retrieval).
func (o *Operator) Baseline(y []float32) *raster.Image {
	if b, ok := o.def.(interface{ baseline(y []float32) []float32 }); ok {
		y = b.baseline(y)
	} else if !slices.Equal(o.Measurement, []int{o.Image.Channels, o.Image.Height, o.Image.Width}) {
		return nil
	}
	return &raster.Image{Channels: o.Image.Channels, Height: o.Image.Height, Width: o.Image.Width, Pix: y}
}

// Picture shows y to people: y as it is where it is an image, else a rendering of it.
func (o *Operator) Picture(y []float32) *raster.Image {
	if p, ok := o.def.(interface{ picture(y []float32) []float32 }); ok {
		y = p.picture(y)
	}
	return &raster.Image{Channels: o.Measurement[0], Height: o.Measurement[1], Width: o.Measurement[2], Pix: y}
}

// positive refuses a parameter outside (0, limit].
func positive(p map[string]float64, name string, limit float64) error {
	if v := p[name]; !(v > 0 && v <= limit) {
		return fmt.Errorf("%w %s: %g is outside (0, %g]", ErrParam, name, v, limit)
	}
	return nil
}
