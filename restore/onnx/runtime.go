package onnx

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// Errors of opening and using the runtime.
var (
	// ErrRuntime: the shared library cannot be loaded or answers with an error.
	ErrRuntime = errors.New("ONNX Runtime")
	// ErrAlreadyOpen: this process holds an open Runtime; it can hold one at a time.
	ErrAlreadyOpen = errors.New("ONNX Runtime is already open in this process")
	// ErrProvider: the execution provider that was asked for cannot be used.
	ErrProvider = errors.New("execution provider is not available")
)

// The execution providers.
const (
	ProviderAuto = "auto" // CUDA when its libraries load, else CPU
	ProviderCPU  = "cpu"
	ProviderCUDA = "cuda"
)

// Config says how to open the runtime.
type Config struct {
	// Library is the path of the shared library. Required.
	Library string
	// Provider is the execution provider. Default: auto.
	Provider string
	// Device is the index of the GPU. Default: 0.
	Device int
	// Threads is the number of threads of one operation on the CPU. Default: 0, which means
	// as many as Go runs on (all cores, or the limit of a container).
	Threads int
	// Logger is told the provider that was chosen, and why. Default: discard.
	Logger *slog.Logger
}

// Validate names the first field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Library == "":
		return errors.New("Library: path of the shared library is missing")
	case c.Device < 0:
		return fmt.Errorf("Device: %d is negative", c.Device)
	case c.Threads < 0:
		return fmt.Errorf("Threads: %d is negative", c.Threads)
	}
	switch c.Provider {
	case "", ProviderAuto, ProviderCPU, ProviderCUDA:
		return nil
	}
	return fmt.Errorf("Provider: %q is none of auto, cpu, cuda", c.Provider)
}

// Runtime is the open ONNX Runtime of this process.
type Runtime struct {
	cfg      Config
	provider string
	version  string
}

var (
	openMu sync.Mutex
	opened bool
)

// Open loads the library and chooses the provider. Only one Runtime can be open in a
// process; Close it before opening another.
func Open(cfg Config) (*Runtime, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open ONNX Runtime: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Threads == 0 {
		cfg.Threads = runtime.GOMAXPROCS(0)
	}
	openMu.Lock()
	defer openMu.Unlock()
	if opened {
		return nil, ErrAlreadyOpen
	}
	// Official builds report their use to their maker, and keep a record among the user's files.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return nil, fmt.Errorf("open ONNX Runtime: %w", err)
	}
	ort.SetSharedLibraryPath(cfg.Library)
	if _, err := keepSignals(func() error { return ort.InitializeEnvironment(ort.WithLogLevelError()) }); err != nil {
		return nil, fmt.Errorf("load %s: %w: %w", cfg.Library, ErrRuntime, err)
	}
	r := &Runtime{cfg: cfg, version: ort.GetVersion()}
	if err := r.choose(); err != nil {
		ort.DestroyEnvironment()
		return nil, err
	}
	opened = true
	cfg.Logger.Info("opened ONNX Runtime", "library", cfg.Library, "version", r.version, "provider", r.provider)
	return r, nil
}

// choose settles the provider by making a session of a tiny graph with it.
func (r *Runtime) choose() error {
	want := r.cfg.Provider
	if want == "" {
		want = ProviderAuto
	}
	if want == ProviderCPU {
		r.provider = ProviderCPU
		return nil
	}
	err := r.try(ProviderCUDA)
	switch {
	case err == nil:
		r.provider = ProviderCUDA
		return nil
	case want == ProviderCUDA:
		return fmt.Errorf("use provider cuda: %w: %w", ErrProvider, err)
	}
	r.cfg.Logger.Debug("no CUDA provider, using the CPU", "reason", err)
	r.provider = ProviderCPU
	return nil
}

func (r *Runtime) try(provider string) error {
	g := NewGraph(DefaultOpset)
	g.Output("y", g.Neg(g.Input("x", Float, 1)))
	model, err := g.Marshal("probe")
	if err != nil {
		return err
	}
	s, err := r.newSession(model, []string{"x"}, []string{"y"}, provider)
	if err != nil {
		return err
	}
	return s.Close()
}

// Provider is the execution provider in use: ProviderCPU or ProviderCUDA.
func (r *Runtime) Provider() string { return r.provider }

// Version is what the library says of itself.
func (r *Runtime) Version() string { return r.version }

// Threads is the number of threads of one operation on the CPU.
func (r *Runtime) Threads() int { return r.cfg.Threads }

// Device names the device in use, empty on the CPU.
func (r *Runtime) Device() string {
	if r.provider == ProviderCUDA {
		return fmt.Sprintf("cuda:%d", r.cfg.Device)
	}
	return ""
}

// Close unloads the runtime. All sessions and tensors must be closed before.
func (r *Runtime) Close() error {
	openMu.Lock()
	defer openMu.Unlock()
	if !opened {
		return nil
	}
	opened = false
	if err := ort.DestroyEnvironment(); err != nil {
		return fmt.Errorf("close: %w: %w", ErrRuntime, err)
	}
	return nil
}
