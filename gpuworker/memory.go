package gpuworker

import (
	"bytes"
	"os"
	"strconv"
)

const (
	// maxDecodeMemory is the largest default memory for decoding: an image of raster.MaxPixels.
	maxDecodeMemory = 2 << 30
	// minDecodeMemory is the smallest: an image of 2 Mi pixels.
	minDecodeMemory = 64 << 20
)

// decodeMemory returns the default memory for decoding: half of the memory of the process, in bytes.
func decodeMemory(machine int64) int64 {
	if machine == 0 {
		return maxDecodeMemory
	}
	return min(max(machine/2, minDecodeMemory), maxDecodeMemory)
}

// machineMemory returns the memory that the process may use: that of the machine, or the limit of its container. 0 if it
// is unknown, as on systems other than Linux.
func machineMemory() int64 {
	var memory int64
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		fields := bytes.Fields(data)
		for i := range len(fields) - 1 {
			if string(fields[i]) == "MemTotal:" {
				memory = number(fields[i+1]) << 10
				break
			}
		}
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(path)
		if limit := number(bytes.TrimSpace(data)); err == nil && limit > 0 && (memory == 0 || limit < memory) {
			memory = limit
		}
	}
	return memory
}

// number parses a number; 0 for any other text, such as "max".
func number(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
