package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ddiff/storage"
)

// TestEach reads objects in the order of their keys, more than at a time, and ends with the first error.
func TestEach(t *testing.T) {
	t.Parallel()
	s, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const n = 40
	for i := range n {
		if err := s.Put(t.Context(), fmt.Sprintf("a/%02d", i), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	for damaged, want := range map[int]int{-1: n, 20: 16, 0: 0} {
		seen := 0
		var last error
		for v, err := range storage.Each(t.Context(), s, "a/", func(ctx context.Context, info storage.Info) (int, error) {
			data, err := s.Get(ctx, info.Key)
			if err != nil {
				return 0, err
			}
			if int(data[0]) == damaged {
				err = broken
			}
			return int(data[0]), err
		}) {
			if last = err; err == nil && v == seen {
				seen++
			}
		}
		if seen != want || errors.Is(last, broken) != (damaged >= 0) {
			t.Errorf("damaged %d: %d objects, %v", damaged, seen, last)
		}
	}
}
