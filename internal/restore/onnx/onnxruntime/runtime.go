package onnxruntime

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"ddiff/internal/failure"
	"ddiff/restore/onnx"
)

// MaxThreads is the largest number of threads. The library starts them with the first session: with many thousands that
// takes minutes.
const MaxThreads = 1024

// Errors of opening and using the runtime.
var (
	// ErrRuntime: the shared library cannot be loaded or answers with an error.
	ErrRuntime = failure.New(failure.Runtime, "ONNX Runtime")
	// ErrAlreadyOpen: a Runtime of another library is open; a process can have one library at a time.
	ErrAlreadyOpen = errors.New("another library of ONNX Runtime is open in this process")
	// ErrProvider: the requested execution provider cannot be used.
	ErrProvider = failure.New(failure.Runtime, "execution provider is not available")
)

// Config configures the runtime.
type Config struct {
	// Library is the path of the shared library. Required.
	Library string
	// Provider is the execution provider. Default: auto.
	Provider string
	// OpenVINO is the path of OpenVINO's library libopenvino_c. Default: none. Needed for openvino; auto uses it beside the CPU
	// provider, see Runtime.Alternative.
	OpenVINO string
	// Unusable is called with the reason why auto cannot use OpenVINO, as soon as it is known. Optional.
	Unusable func(reason error)
	// Device is the index of the GPU. Default: 0, the only one of WebGPU.
	Device int
	// Threads is the number of threads of one operation on the CPU. Default: GOMAXPROCS, which is the number of cores or
	// the limit of a container.
	Threads int // at most MaxThreads
	// Logger receives the choice of the provider and its reason. Default: discard.
	Logger *slog.Logger
}

// Validate names the first field that is invalid or contradicts another.
func (c Config) Validate() error {
	provider := cmp.Or(c.Provider, ProviderAuto)
	switch {
	case c.Library == "":
		return errors.New("Library: path of the shared library is missing")
	case !slices.Contains(Providers(), provider):
		return fmt.Errorf("Provider: %q is none of %s", c.Provider, strings.Join(Providers(), ", "))
	case c.Device < 0:
		return fmt.Errorf("Device: %d is negative", c.Device)
	case c.Device > 0 && provider == ProviderWebGPU:
		return fmt.Errorf("Device: %d: webgpu has only device 0", c.Device)
	case c.Device > 0 && (provider == ProviderCPU || provider == ProviderOpenVINO):
		return fmt.Errorf("Device: %d: %s computes on the CPU, which has no index", c.Device, provider)
	case c.Threads < 0:
		return fmt.Errorf("Threads: %d is negative", c.Threads)
	case c.Threads > MaxThreads:
		return fmt.Errorf("Threads: %d is above %d", c.Threads, MaxThreads)
	}
	return nil
}

// Runtime is the open ONNX Runtime of this process with one provider.
type Runtime struct {
	cfg      Config
	device   Device
	version  string
	openVINO string   // its version, on that provider
	threads  *threads // nil on the CPU provider
	thread   *thread  // one of threads
	shared   bool     // made by With, on the library of another Runtime
	closed   bool
	capture  bool // see Capturing

	// alternative opens OpenVINO at the first call: it takes longer than many a restoration. Nil: there is none.
	alternative func() (*Runtime, error)

	precisions func() []Precision
	traffic    *traffic
}

var (
	openMu  sync.Mutex
	opened  int    // Runtimes that Open has made and Close has not ended
	library string // of these
)

// Open loads the library, unless a Runtime has it open, and chooses the provider. It returns ErrAlreadyOpen while a Runtime of another library is open.
func Open(cfg Config) (*Runtime, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	openMu.Lock()
	defer openMu.Unlock()
	switch {
	case opened > 0 && cfg.Library != library:
		return nil, ErrAlreadyOpen
	case opened > 0:
		r, err := start(cfg)
		if err == nil {
			opened++
		}
		return r, err
	}
	// Disable the telemetry of official builds.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return nil, fmt.Errorf("open ONNX Runtime: %w", err)
	}
	ort.SetSharedLibraryPath(cfg.Library)
	if _, err := preserveSignals(func() error { return ort.InitializeEnvironment(ort.WithLogLevelFatal()) }); err != nil {
		return nil, fmt.Errorf("load %s: %w: %w", cfg.Library, ErrRuntime, err)
	}
	r, err := open(cfg)
	if err != nil {
		ort.DestroyEnvironment()
		return nil, err
	}
	opened, library = 1, cfg.Library
	return r, nil
}

// open makes a Runtime on the library that was just loaded.
func open(cfg Config) (*Runtime, error) {
	if err := loadInterface(cfg.Library); err != nil {
		return nil, fmt.Errorf("load %s: %w: %w", cfg.Library, ErrRuntime, err)
	}
	return start(cfg)
}

// With returns a second Runtime with its own provider on the library of r, for example to compare a GPU with
// the CPU. cfg.Library is ignored. Close it before r.
func (r *Runtime) With(cfg Config) (*Runtime, error) {
	cfg.Library = r.cfg.Library
	if cfg.Logger == nil {
		cfg.Logger = r.cfg.Logger
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	other, err := start(cfg)
	if err != nil {
		return nil, err
	}
	other.shared = true
	return other, nil
}

// complete validates the configuration and fills in defaults.
func (c Config) complete() (Config, error) {
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("open ONNX Runtime: %w", err)
	}
	c.Provider = cmp.Or(c.Provider, ProviderAuto)
	c.Threads = cmp.Or(c.Threads, runtime.GOMAXPROCS(0))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// start makes a Runtime on the loaded library and chooses its provider.
func start(cfg Config) (*Runtime, error) {
	r := &Runtime{cfg: cfg, version: ort.GetVersion(), device: Device{Provider: ProviderCPU}, traffic: &traffic{}}
	r.precisions = sync.OnceValue(r.findPrecisions)
	switch cfg.Provider {
	case ProviderCPU:
	case ProviderOpenVINO:
		if err := r.openOpenVINO(); err != nil {
			return nil, err
		}
	default:
		if err := r.chooseProvider(); err != nil {
			return nil, err
		}
	}
	if cfg.Provider == ProviderAuto && r.Provider() == ProviderCPU && cfg.OpenVINO != "" {
		r.alternative = sync.OnceValues(r.openAlternative)
	}
	cfg.Logger.Info("opened ONNX Runtime", "library", cfg.Library, "version", r.version, "provider", r.Provider())
	return r, nil
}

// cudaLibrary has the CUDA provider. It is beside the library of builds with one.
const cudaLibrary = "libonnxruntime_providers_cuda.so"

// chooseProvider tries the provider with a session of a tiny graph. Auto falls back to the CPU.
func (r *Runtime) chooseProvider() error {
	d := Device{Provider: r.cfg.Provider, Index: r.cfg.Device}
	if r.cfg.Provider == ProviderAuto {
		if _, err := os.Stat(filepath.Join(filepath.Dir(r.cfg.Library), cudaLibrary)); err != nil {
			return nil //nolint:nilerr // a build for the CPU
		}
		d.Provider = ProviderCUDA
	}
	if d.NVIDIA() {
		if err := os.Setenv(noTF32, tf32()); err != nil {
			return fmt.Errorf("open ONNX Runtime: %w", err)
		}
	}
	r.device, r.threads = d, &threads{}
	r.thread = r.threads.at(0)
	err := r.probe()
	if err == nil {
		return nil
	}
	r.threads.stop()
	r.device, r.threads, r.thread = Device{Provider: ProviderCPU}, nil, nil
	if r.cfg.Provider != ProviderAuto {
		return fmt.Errorf("use provider %s: %w: %w", d.Provider, ErrProvider, err)
	}
	r.cfg.Logger.Debug("no CUDA provider, using the CPU", "reason", err)
	return nil
}

func (r *Runtime) probe() error {
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", g.Neg(g.Input("x", onnx.Float, 1)))
	model, err := g.Marshal("probe")
	if err != nil {
		return err
	}
	s, err := r.NewNetworkSession(model, []string{"x"}, []string{"y"}, FP32)
	if err != nil {
		return err
	}
	return s.Close()
}

// Provider returns the execution provider in use, never ProviderAuto.
func (r *Runtime) Provider() string { return r.device.Provider }

// GPU reports whether the provider computes on a GPU.
func (r *Runtime) GPU() bool { return r.device.gpu() }

// Library returns the path of the shared library.
func (r *Runtime) Library() string { return r.cfg.Library }

// Version returns the version of the library.
func (r *Runtime) Version() string { return r.version }

// Threads is the number of threads of one operation on the CPU.
func (r *Runtime) Threads() int { return r.cfg.Threads }

// Device names the device in use, such as "cuda:0"; empty on the CPU.
func (r *Runtime) Device() string {
	if r.device.gpu() {
		return r.device.String()
	}
	return ""
}

// Threaded returns r with another number of threads per operation on the CPU. It is valid until r is closed; do not close it.
func (r *Runtime) Threaded(threads int) *Runtime {
	view := *r
	view.cfg.Threads, view.shared = threads, true
	return &view
}

// Stream is Threaded for the sessions of stream i, from 0, which run beside those of other streams.
func (r *Runtime) Stream(i, threads int) *Runtime {
	view := r.Threaded(threads)
	view.thread = r.threads.at(i)
	return view
}

// Close unloads the library, unless With made r. Close all sessions and tensors before.
func (r *Runtime) Close() error {
	openMu.Lock()
	defer openMu.Unlock()
	r.alternative = nil
	r.threads.stop()
	r.threads, r.thread = nil, nil
	if r.shared || r.closed {
		return nil
	}
	r.closed = true
	if opened--; opened > 0 {
		return nil
	}
	if err := ort.DestroyEnvironment(); err != nil {
		return fmt.Errorf("close: %w: %w", ErrRuntime, err)
	}
	return nil
}
