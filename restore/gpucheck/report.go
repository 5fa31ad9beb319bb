package gpucheck

import "time"

// Schema is the version of the report's format, which docs/devices.md describes.
const Schema = 1

// Report is the result of a check, written as gpu-check.json. The part of a section that did not run or failed is absent.
type Report struct {
	Schema  int       `json:"schema"`
	Time    time.Time `json:"time,omitzero"` // when the check began
	Program string    `json:"program,omitempty"`
	Machine Machine   `json:"machine,omitzero"`
	Config  Config    `json:"config,omitzero"`
	// Sections are in the order in which they ran.
	Sections []Section `json:"sections,omitempty"`
	Provider *Provider `json:"provider,omitempty"`
	// Unsupported maps the precisions that the device does not support to reasons.
	Unsupported map[string]string `json:"lacks,omitempty"`
	Network     []Agreement       `json:"network,omitempty"`
	Tasks       []Task            `json:"tasks,omitempty"`
	Speed       []Speed           `json:"speed,omitempty"`
	Campaign    *Campaign         `json:"campaign,omitempty"`
	Process     *Process          `json:"process,omitempty"`
	Torch       *Torch            `json:"torch,omitempty"`
}

// Machine describes the machine on which the check ran.
type Machine struct {
	OS        string `json:"os"`
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memory_mib"`
	GPU       *GPU   `json:"gpu,omitempty"`
}

// GPU describes the device, as reported by nvidia-smi.
type GPU struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	MemoryMiB int    `json:"memory_mib"`
}

// The statuses of a section.
const (
	StatusOK      = "ok"
	StatusFailed  = "failed"  // an error occurred, or a result is beyond its bound
	StatusSkipped = "skipped" // the section does not apply, or a prerequisite is missing
)

// Section is the outcome of a section.
type Section struct {
	Name    string  `json:"name"`
	Status  string  `json:"status"`
	Detail  string  `json:"detail,omitempty"` // reason of a failure or skip
	Seconds float64 `json:"seconds"`
}

// Provider describes the execution provider that was opened.
type Provider struct {
	Library  string            `json:"library"` // the version of ONNX Runtime
	Name     string            `json:"name"`
	Device   string            `json:"device"`
	Settings map[string]string `json:"settings"`
}

// Agreement compares the score network's outputs on the device and on the CPU for equal inputs.
type Agreement struct {
	Network   string  `json:"network"`   // bundled or random
	Precision string  `json:"precision"` // fp32, tf32 or fp16
	Largest   float64 `json:"largest"`   // largest absolute value on the CPU, in float32
	MaxAbs    float64 `json:"max_abs"`   // largest absolute difference from the CPU in float32
}

// Task compares the restorations of one photograph.
type Task struct {
	Task       string `json:"task"`
	Photograph string `json:"photograph"`
	// StepMaxAbs is the largest absolute difference of the state after one step in float32 from equal states, at the
	// beginning, the middle and the end of a run of 60 steps.
	StepMaxAbs float64 `json:"step_max_abs"`
	// GreyLevels is the largest difference of the restored 8-bit images in float32.
	GreyLevels int `json:"grey_levels"`
	// CPU is the PSNR of the CPU's restoration against the photograph, in dB.
	CPU float64 `json:"cpu_psnr"`
	// Results are the device's restorations, one per precision.
	Results []Result `json:"results"`
}

// Result scores one restoration on the device.
type Result struct {
	Precision string  `json:"precision"`
	PSNR      float64 `json:"psnr"`     // against the photograph, dB
	PSNRToCPU float64 `json:"psnr_cpu"` // against the CPU's restoration in float32, dB, at most 80
}

// Speed is one timing of super-resolution.
type Speed struct {
	Network   string `json:"network"`
	Precision string `json:"precision"`
	Size      int    `json:"size"`
	Batch     int    `json:"batch"`
	// NetworkMS and StepMS are milliseconds per step of the batch, of the network alone and of the solver.
	NetworkMS float64 `json:"network_ms"`
	StepMS    float64 `json:"step_ms"`
	// Share is NetworkMS/StepMS.
	Share float64 `json:"share"`
	// BytesPerStep are transferred between host and device, computed from the tensors of a call.
	BytesPerStep int `json:"bytes_per_step"`
	// MemoryMiB is the device memory in use, or on a CPU the peak resident memory.
	MemoryMiB int `json:"memory_mib,omitempty"`
	// Error is the reason for absent figures: the batch did not fit into memory.
	Error string `json:"error,omitempty"`
}

// Campaign is the network's share of the wall time of whole campaigns, by batch size.
type Campaign struct {
	Task  string          `json:"task"`
	Share map[int]float64 `json:"share"`
}

// Process is the effect of signals on a process whose device is busy.
type Process struct {
	// DrainExit and DrainSeconds are the exit code after SIGTERM and the seconds until exit.
	DrainExit    int     `json:"drain_exit"`
	DrainSeconds float64 `json:"drain_seconds"`
	// Memory is the device memory in MiB before, during and after a process that SIGKILL ends; absent if unknown.
	Memory []int `json:"memory_mib,omitempty"`
	// Restarted: the next process used the device and drained.
	Restarted bool `json:"restarted"`
}

// Torch is the result of running the random network in PyTorch with the same weights.
type Torch struct {
	Version string `json:"torch"`
	Device  string `json:"device"`
	// MaxAbs is the largest difference of PyTorch's output in float32 from ddiff's on the CPU.
	MaxAbs  float64       `json:"max_abs"`
	Results []TorchTiming `json:"results"`
	Skipped []string      `json:"skipped,omitempty"` // modes that this PyTorch or device does not support
}

// TorchTiming is one timing of the network in PyTorch.
type TorchTiming struct {
	Mode      string  `json:"mode"` // eager or compiled
	Precision string  `json:"precision"`
	Batch     int     `json:"batch"`
	MS        float64 `json:"ms"` // per call, the faster of two memory layouts
	Layout    string  `json:"layout"`
}
