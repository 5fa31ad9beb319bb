package check

import "testing"

func TestParsePeak(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{
		"Name:\tddiff\nVmPeak:\t  999 kB\nVmHWM:\t  204800 kB\n": 200,
		"Name:\tddiff\n":   0,
		"VmHWM:\t many kB": 0,
	} {
		if got := parsePeak(status); got != want {
			t.Errorf("parsePeak(%q) = %d MiB, want %d", status, got, want)
		}
	}
	if PeakMiB() < 1 {
		t.Error("PeakMiB reports no memory")
	}
}
