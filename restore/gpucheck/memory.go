package gpucheck

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ddiff/restore/check"
	"ddiff/restore/onnx/onnxruntime"
)

// smiTimeout limits one call of nvidia-smi.
const smiTimeout = 20 * time.Second

// querySMI returns the values of fields that nvidia-smi reports for one GPU.
func querySMI(ctx context.Context, index int, fields ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "-i", strconv.Itoa(index), "--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil, fmt.Errorf("run nvidia-smi: %w", err)
	}
	return parseSMI(string(out), len(fields))
}

// parseSMI parses a line such as "NVIDIA H200, 550.54.15, 143771".
func parseSMI(out string, fields int) ([]string, error) {
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	values := strings.Split(line, ", ")
	if len(values) != fields {
		return nil, fmt.Errorf("nvidia-smi printed %q, want %d values", line, fields)
	}
	return values, nil
}

// DescribeGPU returns name, driver version and memory of a GPU from nvidia-smi.
func DescribeGPU(ctx context.Context, index int) (*GPU, error) {
	v, err := querySMI(ctx, index, "name", "driver_version", "memory.total")
	if err != nil {
		return nil, err
	}
	mib, err := strconv.Atoi(v[2])
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi printed %q for memory.total: %w", v[2], err)
	}
	return &GPU{Name: v[0], Driver: v[1], MemoryMiB: mib}, nil
}

// deviceMemory returns the device memory in use by all processes, in MiB: inside a container the driver does not
// attribute it to processes. known is false for devices that do not report it.
func deviceMemory(ctx context.Context, d onnxruntime.Device) (mib int, known bool, err error) {
	if !d.NVIDIA() {
		return 0, false, nil
	}
	v, err := querySMI(ctx, d.Index, "memory.used")
	if err != nil {
		return 0, false, err
	}
	mib, err = strconv.Atoi(v[0])
	if err != nil {
		return 0, false, fmt.Errorf("nvidia-smi printed %q for memory.used: %w", v[0], err)
	}
	return mib, true, nil
}

// memoryMiB returns the device memory in use, or this process's peak resident memory if the device does not report it.
func memoryMiB(ctx context.Context, d onnxruntime.Device) (int, error) {
	if mib, known, err := deviceMemory(ctx, d); known || err != nil {
		return mib, err
	}
	return check.PeakMiB(), nil
}
