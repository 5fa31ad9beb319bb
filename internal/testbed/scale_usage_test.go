package testbed

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// peakMemory returns the largest resident memory of a process so far, in bytes.
func peakMemory(pid int) (int64, error) { return memory(pid, "VmHWM:") }

// residentMemory returns the resident memory of a process now, in bytes.
func residentMemory(pid int) (int64, error) { return memory(pid, "VmRSS:") }

func memory(pid int, field string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}

// ticks per second in /proc/PID/stat on Linux.
const ticks = 100

// processorTime returns the user and system time of a process so far.
func processorTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses with arbitrary characters.
	_, rest, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("process %d: /proc/PID/stat has %d fields", pid, len(fields))
	}
	var sum int64
	for _, text := range fields[11:13] { // utime and stime, fields 14 and 15 of all
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}
