// Package fuzztest limits what a parser may spend on an input of a fuzz target.
package fuzztest

import (
	"runtime"
	"testing"
	"time"
)

// longest is far above the time of any input of a fuzz target, also on a busy machine.
const longest = 20 * time.Second

// Limit calls f. It fails if f allocates more than limit bytes, freed ones included, or takes more than 20 s. No other goroutine may allocate.
func Limit(t testing.TB, limit int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	f()
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(limit) {
		t.Errorf("allocated %d bytes, the limit is %d", n, limit)
	}
	if took > longest {
		t.Errorf("took %v, the limit is %v", took, longest)
	}
}
