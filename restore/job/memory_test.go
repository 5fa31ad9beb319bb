package job

import "testing"

// The available memory of /proc/meminfo is in KiB; without it the free memory is unknown.
func TestFreeMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"MemTotal: 9 kB\nMemFree:  5 kB\nMemAvailable:    7 kB\n": 7 << 10, "MemTotal: 9 kB\n": 0, "MemAvailable: x kB": 0, "": 0} {
		if got := freeMemory(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if free := FreeMemory(); free <= 0 || free > machineMemory() {
		t.Errorf("%d bytes are free", free)
	}
}

// Half of the memory is for decoding, between 64 MiB and 2 GiB; an unknown memory counts as a large one.
func TestDecodeMemory(t *testing.T) {
	t.Parallel()
	for machine, want := range map[int64]int64{0: 2 << 30, 1: 64 << 20, 1 << 30: 512 << 20, 3 << 30: 1536 << 20, 64 << 30: 2 << 30} {
		if got := decodeMemory(machine); got != want {
			t.Errorf("%d bytes of memory: %d for decoding, want %d", machine, got, want)
		}
	}
	if whole, quarter := SolveMemory(1), SolveMemory(0.25); whole <= 0 || whole != machineMemory() || quarter != int64(0.25*float64(whole)) {
		t.Errorf("%d and %d bytes for solving", whole, quarter)
	}
}
