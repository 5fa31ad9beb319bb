package gpucheck

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ddiff/restore/onnx"
)

// smiTimeout bounds one question to the driver.
const smiTimeout = 20 * time.Second

// smi asks nvidia-smi about one GPU and gives the values of its one line.
func smi(ctx context.Context, index int, fields ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "-i", strconv.Itoa(index),
		"--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil, fmt.Errorf("ask nvidia-smi: %w", err)
	}
	return parseSMI(string(out), len(fields))
}

// parseSMI reads a line such as "NVIDIA H200, 550.54.15, 143771".
func parseSMI(out string, fields int) ([]string, error) {
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	values := strings.Split(line, ",")
	if len(values) != fields {
		return nil, fmt.Errorf("nvidia-smi says %q, want %d values", line, fields)
	}
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return values, nil
}

// DescribeGPU asks nvidia-smi for name, driver and memory of a GPU.
func DescribeGPU(ctx context.Context, index int) (*GPU, error) {
	v, err := smi(ctx, index, "name", "driver_version", "memory.total")
	if err != nil {
		return nil, err
	}
	mib, err := strconv.Atoi(v[2])
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi says %q for memory.total: %w", v[2], err)
	}
	return &GPU{Name: v[0], Driver: v[1], MemoryMiB: mib}, nil
}

// deviceMemory is the memory in use on a device in MiB, by all processes: in a container the
// driver does not tell whose it is. known is false where nobody counts it.
func deviceMemory(ctx context.Context, d onnx.Device) (mib int, known bool, err error) {
	if !d.NVIDIA() {
		return 0, false, nil
	}
	v, err := smi(ctx, d.Index, "memory.used")
	if err != nil {
		return 0, false, err
	}
	mib, err = strconv.Atoi(v[0])
	if err != nil {
		return 0, false, fmt.Errorf("nvidia-smi says %q for memory.used: %w", v[0], err)
	}
	return mib, true, nil
}

// memory is the device memory in use, or else the largest resident set of this process.
func (b *bench) memory(ctx context.Context) (int, error) {
	if mib, known, err := deviceMemory(ctx, b.cfg.device()); known || err != nil {
		return mib, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, nil //nolint:nilerr // not on Linux: there is no figure
	}
	return parseStatus(string(status), "VmHWM:")
}

// parseStatus reads a line such as "VmHWM:	  123456 kB" of a process's status, in MiB.
func parseStatus(status, field string) (int, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			return kib / 1024, err
		}
	}
	return 0, nil
}
