package main

import "testing"

// TestSplit: a package counts as a test if no program contains it, directly or through another package.
func TestSplit(t *testing.T) {
	t.Parallel()
	h := &house{packages: map[string]*room{
		"program":  {lines: 1, program: true, imports: map[string]bool{"direct": true}},
		"direct":   {lines: 10, imports: map[string]bool{"indirect": true}},
		"indirect": {lines: 100},
		"fake":     {lines: 1000, imports: map[string]bool{"direct": true, "faker": true}},
		"faker":    {lines: 10000},
	}}
	if programs, tests := h.split(); programs != 111 || tests != 11000 {
		t.Errorf("got %d and %d lines, want 111 and 11000", programs, tests)
	}
}
