package onnxruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/cpu"
)

// openVINO is the name of the provider in ONNX Runtime, and of its plugin's registration.
const openVINO = "OpenVINOExecutionProvider"

// registered is the path of the plugin that the open library has loaded.
var (
	pluginMu   sync.Mutex
	registered string
)

// forgetPlugin is called when the library is closed, which unloads the plugin.
func forgetPlugin() {
	pluginMu.Lock()
	defer pluginMu.Unlock()
	registered = ""
}

// processor has the properties of the CPU on which OpenVINO depends.
type processor struct {
	avx2     bool // OpenVINO's kernels need it
	bfloat16 bool // products in bfloat16: AVX512-BF16 or AMX
}

func thisProcessor() processor {
	return processor{cpu.X86.HasAVX2, cpu.X86.HasAVX512BF16 || cpu.X86.HasAMXBF16}
}

// usable returns an error if OpenVINO cannot compute on the CPU.
func (p processor) usable() error {
	if !p.avx2 {
		return errors.New("this CPU has no AVX2, which OpenVINO needs")
	}
	return nil
}

// precisions are those in which OpenVINO computes. On a CPU without products in bfloat16 it would use float32 instead.
func (p processor) precisions() []Precision {
	if p.bfloat16 {
		return []Precision{FP32, BF16}
	}
	return []Precision{FP32}
}

// openOpenVINO loads the plugin and compiles a small network with it.
func (r *Runtime) openOpenVINO() error {
	r.device = Device{Provider: ProviderOpenVINO}
	device, err := r.loadPlugin()
	if err == nil {
		r.plugin = device
		err = r.probe()
	}
	if err != nil {
		return fmt.Errorf("use provider %s: %w: %w", ProviderOpenVINO, ErrProvider, err)
	}
	return nil
}

// openAlternative opens OpenVINO beside the CPU provider, if the plugin is usable.
func (r *Runtime) openAlternative() {
	cfg := r.cfg
	cfg.Provider = ProviderOpenVINO
	other, err := start(cfg)
	if err != nil {
		r.unusable = err
		return
	}
	other.shared = true
	r.alternative = other
}

// Alternative returns the runtime of another provider on the same device, which may be faster for a network, or nil: with
// ProviderAuto on the CPU and a usable plugin, it computes with OpenVINO. Close of r closes it.
func (r *Runtime) Alternative() *Runtime { return r.alternative }

// Unusable returns the reason why there is no Alternative although Config has a plugin, or nil.
func (r *Runtime) Unusable() error { return r.unusable }

// loadPlugin registers the plugin, once per open library, and returns its device: the CPU.
func (r *Runtime) loadPlugin() (ort.EpDevice, error) {
	pluginMu.Lock()
	defer pluginMu.Unlock()
	var none ort.EpDevice
	switch path := r.cfg.Plugin; {
	case path == "":
		return none, errors.New("its plugin is not installed; run: ddiff runtime install --ep openvino")
	case registered != "" && registered != path:
		return none, fmt.Errorf("this process has loaded another plugin, %s", registered)
	case registered == "":
		if err := thisProcessor().usable(); err != nil {
			return none, err
		}
		if _, err := preserveSignals(func() error { return ort.RegisterExecutionProviderLibrary(openVINO, path) }); err != nil {
			return none, fmt.Errorf("load %s: %w", path, lineError{err})
		}
		registered = path
	}
	var devices []ort.EpDevice
	_, err := preserveSignals(func() (err error) {
		devices, err = ort.GetEpDevices()
		return err
	})
	if err != nil {
		return none, err
	}
	for _, d := range devices {
		if d.EpName() == openVINO {
			return d, nil
		}
	}
	return none, fmt.Errorf("the plugin offers no device for this CPU (version 1.8.1 only for CPUs made by Intel)")
}

// openVINOHints are the names of the precisions in OpenVINO.
var openVINOHints = map[Precision]string{FP32: "f32", BF16: "bf16"}

// openVINOSettings are the properties of OpenVINO's CPU device, without the number of threads.
func openVINOSettings(p Precision) map[string]string {
	return map[string]string{
		"INFERENCE_PRECISION_HINT": openVINOHints[p],
		"PERFORMANCE_HINT":         "LATENCY",
		// Threads that are bound to cores would share them with those of other workers on the machine.
		"ENABLE_CPU_PINNING": "NO",
	}
}

// appendOpenVINO adds the plugin's device to a session's options.
func (r *Runtime) appendOpenVINO(opts *ort.SessionOptions, p Precision, threads int) error {
	if _, ok := openVINOHints[p]; !ok {
		return fmt.Errorf("%w: openvino does not compute in %s", ErrPrecision, p)
	}
	settings := openVINOSettings(p)
	settings["INFERENCE_NUM_THREADS"] = strconv.Itoa(threads)
	config, err := json.Marshal(map[string]any{"CPU": settings})
	if err != nil {
		return err
	}
	return opts.AppendExecutionProviderV2([]ort.EpDevice{r.plugin}, map[string]string{"load_config": string(config)})
}

// Divides reports whether the provider computes the score network only, in sessions of its own, see Graph.Divide and
// NewNetworkSession. All other sessions are those of the CPU provider.
func (r *Runtime) Divides() bool { return r.device.Provider == ProviderOpenVINO }

// NewNetworkSession is NewSession for a score network, in a precision of the runtime. On a provider that does not divide
// graphs, the model has the precision.
func (r *Runtime) NewNetworkSession(model []byte, inputs, outputs []string, p Precision) (*Session, error) {
	return r.newSession(model, inputs, outputs, target{device: r.device, precision: p, threads: r.cfg.Threads})
}
