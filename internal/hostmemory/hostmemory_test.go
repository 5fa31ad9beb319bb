package hostmemory

import "testing"

// Entries of /proc are in KiB; what the text lacks is unknown.
func TestEntry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"MemTotal: 9 kB\nMemFree:  5 kB\nMemAvailable:    7 kB\n": 7 << 10, "MemTotal: 9 kB\n": 0, "MemAvailable: x kB": 0, "": 0,
	} {
		if got := entry(text, "MemAvailable:"); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	if free, machine, peak := Free(), Machine(), Peak(); free <= 0 || free > machine || peak < 1<<20 || peak > machine {
		t.Errorf("free %d of %d bytes, peak of this process %d", free, machine, peak)
	}
}
