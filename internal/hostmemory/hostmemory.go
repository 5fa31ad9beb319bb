// Package hostmemory reads the memory of this machine and of this process from the system. Amounts are in bytes; 0: the system does not say.
package hostmemory

import (
	"os"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Machine returns the memory that the process may use: that of the machine, or the limit of its container.
func Machine() int64 {
	machine, _ := memlimit.FromSystem() // 0 with an error
	limit, err := memlimit.FromCgroup()
	if err == nil && limit > 0 && (machine == 0 || limit < machine) {
		machine = limit
	}
	return int64(machine)
}

// Free returns the memory that the process can get without swapping.
func Free() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0 // not on Linux
	}
	return min(entry(string(data), "MemAvailable:"), Machine())
}

// Peak returns the largest resident memory that this process had. Memory of a GPU is not included. Unlike the ru_maxrss of getrusage it does not have
// the parent's memory before exec.
func Peak() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return entry(string(data), "VmHWM:")
}

// entry finds a line such as "VmHWM:	  123456 kB".
func entry(text, name string) int64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
