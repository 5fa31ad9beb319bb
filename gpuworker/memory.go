package gpuworker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// peakMemory is the most memory that this process had so far, for people. What a GPU holds
// is not in it.
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "peak memory unknown"
	}
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "VmHWM:" {
			if kib, err := strconv.Atoi(string(fields[1])); err == nil {
				return fmt.Sprintf("peak memory of the process %d MiB", kib/1024)
			}
		}
	}
	return "peak memory unknown"
}
