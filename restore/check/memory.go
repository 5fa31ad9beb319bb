package check

import (
	"os"
	"strconv"
	"strings"
)

// PeakMiB returns the peak resident memory of this process in MiB, or 0 where the system does not report it. GPU memory
// is not included.
func PeakMiB() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0 // not on Linux
	}
	return parsePeak(string(status))
}

// parsePeak finds a line such as "VmHWM:	  123456 kB" and returns MiB. Unlike the ru_maxrss of getrusage, VmHWM does
// not include the parent's memory before exec.
func parsePeak(status string) int {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}
