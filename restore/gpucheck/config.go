package gpucheck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/prior/randomnet"
)

// ErrConfig: a setting of the check is missing or out of range; the message names the field.
var ErrConfig = errors.New("setting of the check")

// Config configures a check. It is recorded in the report.
type Config struct {
	// Only are the sections to run besides the provider. Default: all.
	Only []string `json:"only,omitempty"`
	// Library is the path of ONNX Runtime. Required.
	Library string `json:"library"`
	// Plugin is the path of the OpenVINO plugin, for the device openvino. Default: none.
	Plugin string `json:"plugin,omitempty"`
	// Device is the device to check, in the form of onnxruntime.ParseDevice but not auto. Required.
	Device string `json:"device"`
	// Photographs are the paths of the images to restore; tasks use them in turn. Required by Run.
	Photographs []string `json:"photographs"`
	// Size is the side of the images of the tasks and of the bundled prior, in pixels. Default: 256.
	Size int `json:"size"`
	// Steps is the number of solver steps of a restoration. Default: 60.
	Steps int `json:"steps"`
	// Tasks are the tasks to restore. Default: the eight of the paper.
	Tasks []string `json:"tasks"`
	// Batches are the batch sizes to time, ascending. Default: 1, 4, 8, 16.
	Batches []int `json:"batches"`
	// Random is the network with random weights. Default: randomnet.FFHQ.
	Random randomnet.Config `json:"random"`
	// Measure is the minimum duration of one timing. Default: 2 s.
	Measure time.Duration `json:"measure_ns"`
	// Threads is the number of CPU threads of an operation. Default: 0, all cores.
	Threads int `json:"threads"`
}

// defaults sets unset fields.
func (c Config) defaults(size, steps int, measure time.Duration, batches []int, random func() randomnet.Config) Config {
	c.Size, c.Steps, c.Measure = cmp.Or(c.Size, size), cmp.Or(c.Steps, steps), cmp.Or(c.Measure, measure)
	if len(c.Batches) == 0 {
		c.Batches = batches
	}
	if c.Random.Size == 0 {
		c.Random = random()
	}
	return c
}

// Quick sets unset fields to small values, with which a check runs on a CPU in seconds.
func (c Config) Quick() Config {
	return c.defaults(32, 4, 20*time.Millisecond, []int{1, 2}, func() randomnet.Config { return randomnet.Small(32) })
}

// Complete sets defaults and validates. ErrConfig names the first invalid field.
func (c Config) Complete() (Config, error) {
	c = c.defaults(256, 60, 2*time.Second, []int{1, 4, 8, 16}, randomnet.FFHQ)
	if len(c.Tasks) == 0 {
		c.Tasks = operator.Paper().Names()
	}
	bad := func(field, format string, args ...any) (Config, error) {
		return c, fmt.Errorf("%w %s: %s", ErrConfig, field, fmt.Sprintf(format, args...))
	}
	if d, err := onnxruntime.ParseDevice(c.Device); err != nil {
		return bad("Device", "%v", err)
	} else if d.Provider == onnxruntime.ProviderAuto {
		return bad("Device", "auto is not allowed; name a device")
	}
	for _, t := range c.Tasks {
		if _, err := operator.Builtin().Parameters(t, nil); err != nil {
			return bad("Tasks", "%v", err)
		}
	}
	for _, name := range c.Only {
		if !slices.Contains(Sections(), name) {
			return bad("Only", "no section %q; use %s", name, strings.Join(Sections(), ", "))
		}
	}
	for i, n := range c.Batches {
		if n < 1 || i > 0 && n <= c.Batches[i-1] {
			return bad("Batches", "%v must be ascending and at least 1", c.Batches)
		}
	}
	switch {
	case c.Library == "":
		return bad("Library", "the path of ONNX Runtime is missing")
	case c.Size < 16 || c.Size%8 != 0:
		return bad("Size", "%d must be a multiple of 8, at least 16", c.Size)
	case c.Steps < 2:
		return bad("Steps", "%d must be at least 2", c.Steps)
	case c.Threads < 0:
		return bad("Threads", "%d must not be negative", c.Threads)
	}
	return c, nil
}

// device parses Device of a valid configuration.
func (c Config) device() onnxruntime.Device {
	d, _ := onnxruntime.ParseDevice(c.Device) // Complete has checked it
	return d
}
