package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/install"
	"ddiff/restore/solver"
)

// computeOptions are the flags that say what computes, and how a solver is compiled for it.
type computeOptions struct {
	device    string
	options   []string
	library   string
	threads   int
	chunk     int
	form      string
	precision string
}

// addDevice adds the flags of the device; preset is the device without them.
func (o *computeOptions) addDevice(f *pflag.FlagSet, preset string) {
	f.StringVar(&o.device, "device", preset, onnx.DeviceForms)
	f.StringArrayVar(&o.options, "provider-option", nil, "setting of the device's provider, as in tf32=on; may be repeated")
	f.StringVar(&o.library, "onnxruntime", "", "ONNX Runtime's library or its directory (default: found)")
	f.IntVar(&o.threads, "threads", 0, "CPU threads (0: one per core)")
}

// addBuild adds the flags of how a solver is compiled.
func (o *computeOptions) addBuild(f *pflag.FlagSet) {
	f.IntVar(&o.chunk, "chunk", 0, "solver steps per call of the runtime (0: chosen)")
	f.StringVar(&o.form, "form", "", "how the steps of a call lie in the model: "+words(solver.Forms())+" (default: chosen)")
	f.StringVar(&o.precision, "precision", string(solver.FP32), "arithmetic of the score network: "+words(solver.Precisions()))
}

func words[T ~string](values []T) string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return strings.Join(out, ", ")
}

// build is how solvers are compiled.
func (o computeOptions) build() (solver.Build, error) {
	b := solver.Build{Form: solver.Form(o.form), Chunk: o.chunk, Precision: solver.Precision(o.precision)}
	if err := b.Validate(); err != nil {
		return b, usageError{err}
	}
	return b, nil
}

// open finds ONNX Runtime and opens it with the device that was asked for.
func (o computeOptions) open(log *slog.Logger) (*onnx.Runtime, error) {
	d, err := onnx.ParseDevice(o.device)
	if err != nil {
		return nil, usageError{fmt.Errorf("--device: %w", err)}
	}
	var settings onnx.Options
	for _, s := range o.options {
		if err := settings.Set(s); err != nil {
			return nil, usageError{fmt.Errorf("--provider-option: %w", err)}
		}
	}
	cfg := onnx.Config{Library: "not found yet", Provider: d.Provider, Device: d.Index, Options: settings, Threads: o.threads, Logger: log}
	if err := cfg.Validate(); err != nil {
		return nil, usageError{fmt.Errorf("--device %s: %w", o.device, err)}
	}
	where := install.LocateOptions{Path: o.library}
	switch {
	case d.NVIDIA():
		where.EP = install.CUDA
	case d.Provider == onnx.ProviderWebGPU:
		where.EP = install.CPU // the build that has it
	}
	lib, err := install.Locate(where)
	if err != nil {
		return nil, err
	}
	cfg.Library = lib.Path
	return onnx.Open(cfg)
}
