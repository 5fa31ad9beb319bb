package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/manifest"
	"ddiff/restore"
)

// ComputeOptions are the flags of the device and of the compilation of solvers.
type ComputeOptions struct {
	Device    string
	several   bool // devices
	library   string
	Threads   int
	streams   int
	precision string
	form      string
	// Catalogue has the methods and operators.
	Catalogue manifest.Catalogue
}

const formAuto = "auto"

// AddDevice adds the flags of the device with its default.
func (o *ComputeOptions) AddDevice(f *pflag.FlagSet, value string) {
	f.StringVar(&o.Device, "device", value, onnxruntime.DeviceForms)
	f.StringVar(&o.library, "onnxruntime", "", "ONNX Runtime library (default: searched)")
	f.IntVar(&o.Threads, "threads", 0, "CPU threads (0: one per core)")
}

// AddDevices is AddDevice for a command that uses several devices, see OpenAll.
func (o *ComputeOptions) AddDevices(f *pflag.FlagSet, value string) {
	o.AddDevice(f, value)
	o.several, f.Lookup("device").Usage = true, onnxruntime.DevicesForms
}

// AddBuild adds the flags of the compilation of solvers.
func (o *ComputeOptions) AddBuild(f *pflag.FlagSet) {
	f.IntVar(&o.streams, "streams", 0, "parts of a batch that the CPU computes beside each other (0: one per thread)")
	f.StringVar(&o.form, "form", formAuto, "form of the score network: auto (on CUDA the fastest, else exported), "+Words(prior.Rewritings())+"; +graph behind it for a CUDA graph")
}

// AddPrecision adds the flag of the precision of campaigns that fix none.
func (o *ComputeOptions) AddPrecision(f *pflag.FlagSet) {
	f.StringVar(&o.precision, "precision", string(onnxruntime.FP32),
		"arithmetic of the score network for campaigns without a precision: float32, bfloat16, float16")
}

// Words joins values for help texts and messages.
func Words[T ~string](values []T) string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return strings.Join(out, ", ")
}

// Build returns the validated compilation settings.
func (o ComputeOptions) Build() (solver.Build, error) {
	b := solver.Build{Streams: o.streams}
	if o.form != formAuto {
		b.Form = prior.Form(o.form)
	}
	if o.precision != "" {
		var err error
		if b.Precision, err = onnxruntime.ParsePrecision(o.precision); err != nil {
			return b, Usage(fmt.Errorf("--%w", err))
		}
	}
	if err := b.Validate(); err != nil {
		return b, Usage(fmt.Errorf("--%s", strings.TrimPrefix(err.Error(), solver.ErrConfig.Error()+" "))) // the field is the flag
	}
	return b, nil
}

// Engine returns the configuration of an engine with the given build.
func (o ComputeOptions) Engine(b solver.Build) restore.Config {
	c := restore.Config{Build: b, Methods: o.Catalogue.Methods, Operators: o.Catalogue.Operators}
	if o.form == "" || o.form == formAuto {
		c.ChooseOn = onnxruntime.ProviderCUDA
	}
	return c
}

// Check checks the flags without a look at the machine, and returns the compilation settings.
func (o ComputeOptions) Check() (solver.Build, error) {
	b, err := o.Build()
	if err == nil {
		_, err = o.runtimes(nil)
	}
	return b, err
}

// runtimes returns the configurations of ONNX Runtime for the devices, without its library.
func (o ComputeOptions) runtimes(log *slog.Logger) (all []onnxruntime.Config, err error) {
	devices, err := onnxruntime.ParseDevices(o.Device)
	if err != nil {
		return nil, Usage(fmt.Errorf("--device: %w", err))
	}
	if !o.several {
		if strings.Contains(o.Device, ",") {
			return nil, Usage(fmt.Errorf("--device %s: this command uses one device", o.Device))
		}
		devices = devices[:1]
	}
	if o.Threads < 0 {
		return nil, Usage(fmt.Errorf("--threads: %d is negative; use 0 for one thread per core", o.Threads))
	}
	if o.Threads > onnxruntime.MaxThreads {
		return nil, Usage(fmt.Errorf("--threads: %d is above %d; use 0 for one thread per core", o.Threads, onnxruntime.MaxThreads))
	}
	for _, d := range devices {
		cfg := onnxruntime.Config{Library: "not located yet", Provider: d.Provider, Device: d.Index, Threads: o.Threads, Logger: log}
		if err := cfg.Validate(); err != nil {
			return nil, Usage(fmt.Errorf("--device %s: %w", o.Device, err))
		}
		all = append(all, cfg)
	}
	return all, nil
}

// Open locates ONNX Runtime and opens it with the requested device.
func (o ComputeOptions) Open(log *slog.Logger) (*onnxruntime.Runtime, error) {
	configs, err := o.runtimes(log)
	if err != nil {
		return nil, err
	}
	all, err := o.open(log, configs[:1])
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OpenAll locates ONNX Runtime and opens it with each of the requested devices. It leaves out GPUs that cannot be used, unless the flag has their
// index. CloseRuntimes closes them.
func (o ComputeOptions) OpenAll(log *slog.Logger) ([]*onnxruntime.Runtime, error) {
	configs, err := o.runtimes(log)
	if err != nil {
		return nil, err
	}
	return o.open(log, configs)
}

func (o ComputeOptions) open(log *slog.Logger, configs []onnxruntime.Config) (all []*onnxruntime.Runtime, err error) {
	lib, err := onnxruntime.Library(configs[0].Provider, o.library)
	if err != nil {
		return nil, err
	}
	vino, err := openVINO(configs[0].Provider)
	if err != nil {
		return nil, err
	}
	chosen := strings.ContainsAny(o.Device, ":,")
	var failed error
	for _, cfg := range configs {
		cfg.Library, cfg.OpenVINO, cfg.Unusable = lib.Path, vino, noteUnusable
		var rt *onnxruntime.Runtime
		if len(all) == 0 {
			rt, err = onnxruntime.Open(cfg)
		} else {
			rt, err = all[0].With(cfg)
		}
		if err == nil {
			all = append(all, rt)
			continue
		}
		failed = errors.Join(failed, err)
		log.Debug("a device cannot be used", "provider", cfg.Provider, "device", cfg.Device, "reason", err)
	}
	if failed != nil && (len(all) == 0 || chosen) {
		return nil, errors.Join(failed, CloseRuntimes(all))
	}
	return all, nil
}

// CloseRuntimes closes the runtimes of OpenAll.
func CloseRuntimes(all []*onnxruntime.Runtime) error {
	var errs []error
	for _, rt := range slices.Backward(all) {
		errs = append(errs, rt.Close())
	}
	return errors.Join(errs...)
}

// openVINO returns the path of OpenVINO's library for a provider, or "". With auto, a damaged one is noted.
func openVINO(provider string) (string, error) {
	if provider != onnxruntime.ProviderAuto && provider != onnxruntime.ProviderOpenVINO {
		return "", nil
	}
	lib, err := install.LocateOpenVINO("")
	switch {
	case err == nil:
		return lib.Path, nil
	case provider == onnxruntime.ProviderOpenVINO:
		return "", fmt.Errorf("use provider %s: %w", provider, err)
	case errors.Is(err, install.ErrUnsupported): // none for this platform
	case !errors.Is(err, install.ErrNoOpenVINO) || os.Getenv(install.OpenVINOVar) != "":
		noteUnusable(err)
	}
	return "", nil
}

// noted has the notes of this process. A bench opens a runtime for each campaign.
var noted sync.Map

// noteUnusable prints the reason why the CPU provider computes alone, once.
func noteUnusable(reason error) {
	note := Printable(reason.Error())
	if _, printed := noted.LoadOrStore(note, true); !printed {
		fmt.Fprintf(os.Stderr, "ddiff: note: using the CPU provider alone: %s\n", note)
	}
}
