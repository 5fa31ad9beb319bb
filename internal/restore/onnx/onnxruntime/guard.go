package onnxruntime

import (
	"fmt"
	"strings"

	"ddiff/internal/failure"
)

// ErrFallback: the device does not compute a model as the CPU does, or at all. ONNX Runtime would silently run nodes that the provider lacks on
// the CPU.
var ErrFallback = failure.New(failure.Runtime, "the device does not compute the model")

// guardKey is the setting that makes ONNX Runtime refuse such a session. It checks the nodes of the main graph only: a
// Loop counts as a CPU node if the provider has no Loop, even if its body runs on the device.
const guardKey = "session.disable_cpu_ep_fallback"

// refuseFallback adds ErrFallback and the remedy to the error of a session that the setting refuses.
func (r *Runtime) refuseFallback(err error) error {
	if err == nil || !strings.Contains(err.Error(), "fallback to CPU EP has been explicitly disabled") {
		return err
	}
	return fmt.Errorf("make session: %w: %w: %s does not support all of its nodes; use --device cpu",
		ErrRuntime, ErrFallback, r.Provider())
}
