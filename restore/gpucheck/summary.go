package gpucheck

import (
	"fmt"
	"math"
)

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

// psnr returns the lowest PSNR of a precision's restorations against the CPU's, in dB.
func (r *Report) psnr(precision string) (lowest float64, ok bool) {
	lowest = math.Inf(1)
	for _, t := range r.Tasks {
		for _, x := range t.Results {
			if x.Precision == precision {
				lowest, ok = min(lowest, x.PSNRToCPU), true
			}
		}
	}
	return lowest, ok
}

// step returns the solver's milliseconds per step with the random network in float32.
func (r *Report) step(batch int) (ms float64, ok bool) {
	for _, s := range r.Speed {
		if s.Network == randomNetwork && s.Precision == fp32 && s.Batch == batch && s.Error == "" {
			return s.StepMS, true
		}
	}
	return 0, false
}

// torch returns PyTorch's milliseconds per call of the network, compiled if possible, else eager.
func (r *Report) torch(precision string, batch int) (ms float64, ok bool) {
	if r.Torch == nil {
		return 0, false
	}
	compiled := false
	for _, t := range r.Torch.Results {
		if t.Precision != precision || t.Batch != batch || compiled && t.Mode != modeCompiled {
			continue
		}
		ms, ok, compiled = t.MS, true, t.Mode == modeCompiled
	}
	return ms, ok
}

// modeCompiled is the TorchTiming.Mode of a compiled network.
const modeCompiled = "compiled"

// versusTorch returns the lowest ratio, over precisions and batches, of PyTorch's time for the network to ddiff's. Above
// 1, PyTorch is slower.
func (r *Report) versusTorch() (lowest float64, ok bool) {
	lowest = math.Inf(1)
	for _, s := range r.Speed {
		if s.Network != randomNetwork || s.Error != "" {
			continue
		}
		if ms, found := r.torch(s.Precision, s.Batch); found {
			lowest, ok = min(lowest, ms/s.NetworkMS), true
		}
	}
	return lowest, ok
}

// Line returns the summary for scripts. A value that was not measured is "skipped". Times are the solver's with the
// random network in float32; the share is the campaign's.
func (r *Report) Line() string {
	value := func(format string, v float64, ok bool) string {
		if !ok {
			return StatusSkipped
		}
		return fmt.Sprintf(format, v)
	}
	first, last := r.Config.Batches[0], r.Config.lastBatch()
	provider := StatusSkipped
	if r.Provider != nil {
		provider = r.Provider.Name
	}
	tf, hasTF := r.psnr(tf32)
	half, hasHalf := r.psnr(fp16)
	one, hasOne := r.step(first)
	many, hasMany := r.step(last)
	share, hasShare := 0.0, false
	if r.Campaign != nil {
		share, hasShare = r.Campaign.Share[last], true
	}
	ratio, hasRatio := r.versusTorch()
	times := fmt.Sprintf("ms_b%d=%s", first, value("%.2f", one, hasOne))
	if last != first {
		times += fmt.Sprintf(" ms_b%d=%s", last, value("%.2f", many, hasMany))
	}
	return fmt.Sprintf("device=%s provider=%s parity_max=%s tf32_psnr=%s fp16_psnr=%s %s share_b%d=%s vs_torch=%s",
		r.Config.Device, provider, value("%.2e", r.parity(), len(r.Network)+len(r.Tasks) > 0), value("%.1f", tf, hasTF), value("%.1f", half, hasHalf),
		times, last, value("%.2f", share, hasShare), value("%.2f", ratio, hasRatio))
}
