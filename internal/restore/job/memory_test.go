package job

import (
	"testing"

	"ddiff/internal/hostmemory"
)

// Half of the memory is for decoding, between 64 MiB and 4 GiB; an unknown memory counts as a large one.
func TestDecodeMemory(t *testing.T) {
	t.Parallel()
	for machine, want := range map[int64]int64{0: 4 << 30, 1: 64 << 20, 1 << 30: 512 << 20, 3 << 30: 1536 << 20, 64 << 30: 4 << 30} {
		if got := decodeMemory(machine); got != want {
			t.Errorf("%d bytes of memory: %d for decoding, want %d", machine, got, want)
		}
	}
	if whole, quarter := SolveMemory(1), SolveMemory(0.25); whole <= 0 || whole != hostmemory.Machine() || quarter != int64(0.25*float64(whole)) {
		t.Errorf("%d and %d bytes for solving", whole, quarter)
	}
}
