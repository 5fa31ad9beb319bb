package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ddiff/internal/cli"
	"ddiff/restore/gpucheck"
	"ddiff/restore/onnx/install"
	"ddiff/restore/onnx/onnxruntime"
)

// checkGPU checks a device, writes the report and prints the line for scripts.
func checkGPU(ctx context.Context, o doctorOptions, stdout, stderr io.Writer) error {
	cfg, err := o.config()
	if err != nil {
		return cli.Usage(err)
	}
	report, err := o.run(ctx, cfg, stderr)
	if errors.Is(err, cli.ErrNoGPU) {
		fmt.Fprintln(stdout, err)
		fmt.Fprintln(stdout, "gpu=absent")
		return cli.ErrNoGPU
	}
	if err != nil {
		return err
	}
	if err := writeReport(o.out, report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	fmt.Fprintln(stdout, report.Line())
	if failed := report.Failed(); len(failed) > 0 {
		return fmt.Errorf("%w: check of the device failed in %s; see %s", cli.ErrMismatch, strings.Join(failed, ", "), filepath.Join(o.out, "gpu-check.json"))
	}
	return nil
}

// config returns the configuration of the check without the library, which run locates.
func (o doctorOptions) config() (gpucheck.Config, error) {
	cfg := o.check
	if o.quick {
		cfg = cfg.Quick()
	}
	photographs, err := filepath.Glob(filepath.Join(o.images, "*.png"))
	if err != nil || len(photographs) == 0 {
		return cfg, fmt.Errorf("--images: %s contains no PNG; name a directory of photographs", o.images)
	}
	for _, p := range photographs {
		path, err := filepath.Abs(p)
		if err != nil {
			return cfg, err
		}
		cfg.Photographs = append(cfg.Photographs, path)
	}
	valid := cfg
	valid.Library = "not located yet"
	_, err = valid.Complete()
	return cfg, err
}

// run locates the library and runs the check. cli.ErrNoGPU: the device cannot be used.
func (o doctorOptions) run(ctx context.Context, cfg gpucheck.Config, stderr io.Writer) (*gpucheck.Report, error) {
	device, err := onnxruntime.ParseDevice(cfg.Device)
	if err != nil {
		return nil, cli.Usage(err)
	}
	var lib install.Library
	if device.NVIDIA() {
		lib, err = cudaLibrary(ctx, o.library, stderr)
	} else {
		lib, err = install.Locate(install.LocateOptions{Path: o.library})
	}
	if err != nil {
		return nil, err
	}
	cfg.Library = lib.Path
	start, err := self()
	if err != nil {
		return nil, err
	}
	machine, begin := hostMachine(), time.Now()
	if device.NVIDIA() {
		if machine.GPU, err = gpucheck.DescribeGPU(ctx, device.Index); err != nil {
			fmt.Fprintln(stderr, "note:", err)
		}
	}
	report, err := gpucheck.Run(ctx, cfg, start, stderr)
	if errors.Is(err, gpucheck.ErrAbsent) {
		return nil, fmt.Errorf("%w: %w", cli.ErrNoGPU, err)
	}
	if err != nil {
		return nil, err
	}
	report.Time, report.Program, report.Machine = begin.UTC().Truncate(time.Second), cli.Version(), machine
	return report, nil
}

// writeReport writes gpu-check.json.
func writeReport(dir string, report *gpucheck.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "gpu-check.json"), append(data, '\n'), 0o644)
}
