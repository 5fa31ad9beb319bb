package gpucheck

import (
	"fmt"
	"math"
	"time"
)

// Schema is the version of the report's format, which docs/devices.md describes.
const Schema = 2

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
	Process     *Process          `json:"process,omitempty"`
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
	StatusSkipped = "skipped" // the section was not selected
)

// Section is the outcome of a section.
type Section struct {
	Name    string  `json:"name"`
	Status  string  `json:"status"`
	Detail  string  `json:"detail,omitempty"` // reason of a failure
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
	// MemoryMiB is the device memory in use, or on a CPU the peak resident memory.
	MemoryMiB int `json:"memory_mib,omitempty"`
	// Error is the reason for absent figures: the batch did not fit into memory.
	Error string `json:"error,omitempty"`
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

// Failed returns the names of the failed sections.
func (r *Report) Failed() []string {
	var out []string
	for _, s := range r.Sections {
		if s.Status == StatusFailed {
			out = append(out, s.Name)
		}
	}
	return out
}

// parity returns the largest difference in float32, over network outputs and states after one step.
func (r *Report) parity() float64 {
	largest := 0.0
	for _, a := range r.Network {
		if a.Precision == fp32 {
			largest = max(largest, a.MaxAbs)
		}
	}
	for _, t := range r.Tasks {
		largest = max(largest, t.StepMaxAbs)
	}
	return largest
}

// psnr returns the lowest PSNR of a precision's restorations against the CPU's, in dB, or NaN.
func (r *Report) psnr(precision string) float64 {
	lowest := math.NaN()
	for _, t := range r.Tasks {
		for _, x := range t.Results {
			if x.Precision == precision && !(lowest <= x.PSNRToCPU) {
				lowest = x.PSNRToCPU
			}
		}
	}
	return lowest
}

// step returns the solver's milliseconds per step with the random network in float32, or NaN.
func (r *Report) step(batch int) float64 {
	for _, s := range r.Speed {
		if s.Network == randomNetwork && s.Precision == fp32 && s.Batch == batch && s.Error == "" {
			return s.StepMS
		}
	}
	return math.NaN()
}

// Line returns the summary for scripts. A value that was not measured is "skipped". Times are the solver's with the
// random network in float32.
func (r *Report) Line() string {
	value := func(format string, v float64) string {
		if math.IsNaN(v) {
			return StatusSkipped
		}
		return fmt.Sprintf(format, v)
	}
	provider, parity := StatusSkipped, math.NaN()
	if r.Provider != nil {
		provider = r.Provider.Name
	}
	if len(r.Network)+len(r.Tasks) > 0 {
		parity = r.parity()
	}
	line := fmt.Sprintf("device=%s provider=%s parity_max=%s tf32_psnr=%s fp16_psnr=%s", r.Config.Device, provider,
		value("%.2e", parity), value("%.1f", r.psnr(tf32)), value("%.1f", r.psnr(fp16)))
	for i, n := range r.Config.Batches {
		if i == 0 || i == len(r.Config.Batches)-1 {
			line += fmt.Sprintf(" ms_b%d=%s", n, value("%.2f", r.step(n)))
		}
	}
	return line
}
