package gpuworker

import (
	"testing"

	"ddiff/restore/item"
)

// TestPreflightAttemptsBeginWithOtherImages: an image that ends the worker must not end every attempt.
func TestPreflightAttemptsBeginWithOtherImages(t *testing.T) {
	t.Parallel()
	var sample []item.Item
	for _, name := range []string{"a", "a", "b", "c"} {
		sample = append(sample, item.Item{Name: name, Index: len(sample)})
	}
	for attempt, want := range map[int]string{0: "aabc", 1: "aabc", 2: "bcaa", 3: "caab", 4: "aabc", 9: "aabc"} {
		got := ""
		for _, it := range (&preflight{attempt: attempt, sample: sample}).rotated() {
			got += it.Name
		}
		if got != want {
			t.Errorf("attempt %d reads %s, want %s", attempt, got, want)
		}
	}
}
