package gpucheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior/randomnet"
)

// ErrConfig: a setting of the check is missing or out of its range; the message names it.
var ErrConfig = errors.New("setting of the check")

// Config says what to check, and how thoroughly.
type Config struct {
	// Only are the sections to run beside the provider. Default: all.
	Only []string `json:"only,omitempty"`
	// Library is the path of ONNX Runtime. Required.
	Library string `json:"library"`
	// Device is what to check, in the form of onnx.ParseDevice; not auto. Required.
	Device string `json:"device"`
	// Photographs are the paths of the pictures to restore; task k gets picture k, from the
	// first again after the last. Required by Run.
	Photographs []string `json:"photographs"`
	// Size is the side of the images of the tasks and of the bundled prior, in pixels.
	// Default: 256.
	Size int `json:"size"`
	// Steps are the solver steps of a restoration. Default: 60.
	Steps int `json:"steps"`
	// Tasks to restore. Default: all.
	Tasks []string `json:"tasks"`
	// Batches are the batch sizes to time, in rising order. Default: 1, 4, 8, 16.
	Batches []int `json:"batches"`
	// Random is the network with random weights. Default: randomnet.FFHQ.
	Random randomnet.Config `json:"random"`
	// Measure is how long one timing takes at least. Default: 2 s.
	Measure time.Duration `json:"measure_ns"`
	// Threads of one operation on the CPU. Default: 0, all cores.
	Threads int `json:"threads"`
	// Python is an interpreter with PyTorch. Default: empty, which leaves PyTorch out.
	Python string `json:"python,omitempty"`
	// Tools is the directory of the Python packages. Default: tools.
	Tools string `json:"tools"`
}

// Quick makes the settings small: the same code, in seconds on a CPU.
func (c Config) Quick() Config {
	c.Size, c.Steps, c.Batches, c.Measure = 32, 4, []int{1, 2}, 20*time.Millisecond
	c.Random = randomnet.Small(32)
	return c
}

// Complete fills in what was left out, and names the first field that is wrong.
func (c Config) Complete() (Config, error) {
	def := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	def(&c.Size, 256)
	def(&c.Steps, 60)
	if len(c.Batches) == 0 {
		c.Batches = []int{1, 4, 8, 16}
	}
	if c.Random.Size == 0 {
		c.Random = randomnet.FFHQ()
	}
	if c.Measure == 0 {
		c.Measure = 2 * time.Second
	}
	if c.Tools == "" {
		c.Tools = "tools"
	}
	if len(c.Tasks) == 0 {
		c.Tasks = operator.Builtin().Names()
	}
	return c, c.validate()
}

func (c Config) validate() error {
	bad := func(field, format string, args ...any) error {
		return fmt.Errorf("%w %s: %s", ErrConfig, field, fmt.Sprintf(format, args...))
	}
	if d, err := onnx.ParseDevice(c.Device); err != nil {
		return bad("Device", "%v", err)
	} else if d.Provider == onnx.ProviderAuto {
		return bad("Device", "name one: a check of whatever there is checks nothing")
	}
	for _, t := range c.Tasks {
		if _, err := operator.Builtin().Parameters(t, nil); err != nil {
			return bad("Tasks", "%v", err)
		}
	}
	for _, name := range c.Only {
		if !slices.Contains(Sections(), name) {
			return bad("Only", "%q is none of %s", name, strings.Join(Sections(), ", "))
		}
	}
	for i, n := range c.Batches {
		if n < 1 || i > 0 && n <= c.Batches[i-1] {
			return bad("Batches", "%v do not rise from at least 1", c.Batches)
		}
	}
	if err := c.Random.Validate(); err != nil {
		return bad("Random", "%v", err)
	}
	switch {
	case c.Library == "":
		return bad("Library", "the path of ONNX Runtime is missing")
	case c.Size < 16 || c.Size%8 != 0:
		return bad("Size", "%d is not a multiple of 8, at least 16", c.Size)
	case c.Steps < 2:
		return bad("Steps", "%d is below 2", c.Steps)
	case c.Measure < 0:
		return bad("Measure", "%v is negative", c.Measure)
	case c.Threads < 0:
		return bad("Threads", "%d is negative", c.Threads)
	}
	return nil
}

// device is the parsed Device of a valid configuration.
func (c Config) device() onnx.Device {
	d, err := onnx.ParseDevice(c.Device)
	if err != nil {
		return onnx.Device{Provider: onnx.ProviderCPU}
	}
	return d
}

// lastBatch is the largest batch size.
func (c Config) lastBatch() int { return c.Batches[len(c.Batches)-1] }
