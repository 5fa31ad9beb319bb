package noise

import (
	"syscall"
	"testing"
)

// BenchmarkHostNormal measures the CPU time of a deviate on one core, see `make bench-host`.
func BenchmarkHostNormal(b *testing.B) {
	dst := make([]float32, 3*256*256)
	before := cpuNanoseconds(b)
	for b.Loop() {
		Normal(dst, Key{1, 2, 3}, Step, 7, 0.5)
	}
	b.ReportMetric((cpuNanoseconds(b)-before)/float64(b.N)/float64(len(dst)), "noise_ns")
}

func cpuNanoseconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
