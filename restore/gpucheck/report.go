package gpucheck

import "time"

// Schema is the version of the report's form. docs/gpu/README.md describes it.
const Schema = 1

// Report is what a check found: gpu-check.json. A part is absent where its section did not
// run or failed.
type Report struct {
	Schema  int       `json:"schema"`
	Time    time.Time `json:"time,omitzero"` // when the check began
	Program string    `json:"program,omitempty"`
	Machine Machine   `json:"machine,omitzero"`
	Config  Config    `json:"config,omitzero"`
	// Sections are in the order in which they ran.
	Sections []Section `json:"sections,omitempty"`
	Provider *Provider `json:"provider,omitempty"`
	// Lacks are the precisions that the device does not have, with its words.
	Lacks    map[string]string `json:"lacks,omitempty"`
	Network  []Agreement       `json:"network,omitempty"`
	Tasks    []Task            `json:"tasks,omitempty"`
	Speed    []Speed           `json:"speed,omitempty"`
	Campaign *Campaign         `json:"campaign,omitempty"`
	Process  *Process          `json:"process,omitempty"`
	Torch    *Torch            `json:"torch,omitempty"`
}

// Machine is where the check ran.
type Machine struct {
	OS        string `json:"os"`
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memory_mib"`
	GPU       *GPU   `json:"gpu,omitempty"`
}

// GPU is what nvidia-smi says of the device.
type GPU struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	MemoryMiB int    `json:"memory_mib"`
}

// The states of a section.
const (
	StatusOK      = "ok"
	StatusFailed  = "failed"  // it did not come to an end, or what it found is out of bounds
	StatusSkipped = "skipped" // it does not apply, or something that it needs is not there
)

// Section is how a part of the check ended.
type Section struct {
	Name    string  `json:"name"`
	Status  string  `json:"status"`
	Detail  string  `json:"detail,omitempty"` // why it failed or was skipped
	Seconds float64 `json:"seconds"`
}

// Provider is what was opened.
type Provider struct {
	Library  string            `json:"library"` // the version of ONNX Runtime
	Name     string            `json:"name"`
	Device   string            `json:"device"`
	Settings map[string]string `json:"settings"`
}

// Agreement compares the score network's outputs for equal inputs.
type Agreement struct {
	Network   string  `json:"network"`   // bundled or random
	Precision string  `json:"precision"` // fp32, tf32 or fp16
	Largest   float64 `json:"largest"`   // the largest absolute value on the CPU, in float32
	MaxAbs    float64 `json:"max_abs"`   // the largest absolute difference from it
}

// Task compares the restorations of one photograph.
type Task struct {
	Task       string `json:"task"`
	Photograph string `json:"photograph"`
	// StepMaxAbs is the largest absolute difference of the state after one step in float32
	// from equal states, at the beginning, the middle and the end of a run of 60 steps.
	StepMaxAbs float64 `json:"step_max_abs"`
	// GreyLevels is the largest difference of the restored 8-bit images in float32.
	GreyLevels int `json:"grey_levels"`
	// CPU is the PSNR of the CPU's restoration against the photograph, in dB.
	CPU float64 `json:"cpu_psnr"`
	// Results are those of the device, one for each precision.
	Results []Result `json:"results"`
}

// Result is a restoration on the device.
type Result struct {
	Precision string  `json:"precision"`
	PSNR      float64 `json:"psnr"`     // against the photograph, dB
	Versus    float64 `json:"psnr_cpu"` // against the CPU's restoration in float32, dB, at most 80
}

// Speed is one timing of super-resolution.
type Speed struct {
	Network   string `json:"network"`
	Precision string `json:"precision"`
	Size      int    `json:"size"`
	Batch     int    `json:"batch"`
	// NetworkMS and StepMS are milliseconds per step of the batch: of the network alone, and
	// of the solver with it.
	NetworkMS float64 `json:"network_ms"`
	StepMS    float64 `json:"step_ms"`
	// Share of the network in the solver's time.
	Share float64 `json:"share"`
	// BytesPerStep cross between host and device, computed from the tensors of a call.
	BytesPerStep int `json:"bytes_per_step"`
	// MemoryMiB is the device memory in use, or on a CPU the largest resident set so far.
	MemoryMiB int `json:"memory_mib,omitempty"`
	// Error is why there are no figures: the batch did not fit.
	Error string `json:"error,omitempty"`
}

// Campaign is the network's share of the wall time of whole campaigns, by batch size.
type Campaign struct {
	Task  string          `json:"task"`
	Share map[int]float64 `json:"share"`
}

// Process is what signals did to a process whose device was busy.
type Process struct {
	// SIGTERM: the exit code and the seconds to the end.
	DrainExit    int     `json:"drain_exit"`
	DrainSeconds float64 `json:"drain_seconds"`
	// SIGKILL: device memory in MiB before, during and after; absent where it is not known.
	Memory []int `json:"memory_mib,omitempty"`
	// Restarted: the next process on the device worked, and drained too.
	Restarted bool `json:"restarted"`
}

// Torch is PyTorch with the weights of the random network.
type Torch struct {
	Version string `json:"torch"`
	Device  string `json:"device"`
	// MaxAbs is the largest difference of its output in float32 from ours on the CPU.
	MaxAbs  float64       `json:"max_abs"`
	Results []TorchTiming `json:"results"`
	Skipped []string      `json:"skipped,omitempty"` // modes that this PyTorch or device lacks
}

// TorchTiming is one timing of the network alone.
type TorchTiming struct {
	Mode      string  `json:"mode"` // eager or compiled
	Precision string  `json:"precision"`
	Batch     int     `json:"batch"`
	MS        float64 `json:"ms"` // per call, the faster of two memory layouts
	Layout    string  `json:"layout"`
}
