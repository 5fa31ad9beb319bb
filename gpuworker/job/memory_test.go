package job

import (
	"testing"
	"testing/fstest"
)

// The memory is that of the machine, or the smaller limit of a container.
func TestMemoryOfMachine(t *testing.T) {
	t.Parallel()
	const machine = "MemFree:  1024 kB\nMemTotal:  16777216 kB\nMemAvailable:  2048 kB\n"
	const v1, v2 = "sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory.max"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"another system":     {nil, 0},
		"no limit":           {map[string]string{"proc/meminfo": machine, v2: "max\n"}, 16 << 30},
		"limit":              {map[string]string{"proc/meminfo": machine, v2: "4294967296\n"}, 4 << 30},
		"limit of version 1": {map[string]string{"proc/meminfo": machine, v1: "2147483648\n"}, 2 << 30},
		"larger limit":       {map[string]string{"proc/meminfo": machine, v1: "9223372036854771712\n"}, 16 << 30},
		"limit alone":        {map[string]string{v2: "4294967296\n"}, 4 << 30},
		"limit of zero":      {map[string]string{"proc/meminfo": machine, v2: "0\n"}, 16 << 30},
		"no total":           {map[string]string{"proc/meminfo": "MemFree:  1024 kB\nMemTotal:"}, 0},
	} {
		root := fstest.MapFS{}
		for file, content := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(content)}
		}
		if got := memoryOf(root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
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
	if whole, quarter := SolveMemory(1), SolveMemory(0.25); whole != machineMemory() || quarter != int64(0.25*float64(whole)) {
		t.Errorf("%d and %d bytes for solving", whole, quarter)
	}
}
