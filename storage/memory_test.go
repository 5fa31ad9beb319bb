package storage_test

import (
	"errors"
	"testing"

	"ddiff/storage"
	"ddiff/storage/storagetest"
)

func TestMemoryContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(*testing.T) storage.Store { return storage.NewMemory() })
}

func TestMaxBytes(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	memory := storage.NewMemory()
	stores := []struct {
		name  string
		store storage.Store
		limit func(int64)
	}{
		{"dir", dir, func(n int64) { dir.MaxBytes = n }},
		{"memory", memory, func(n int64) { memory.MaxBytes = n }},
	}
	for _, c := range stores {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			c.limit(4)
			if err := c.store.Put(ctx, "four", []byte("1234")); err != nil {
				t.Fatal(err)
			}
			if err := c.store.Put(ctx, "five", []byte("12345")); !errors.Is(err, storage.ErrTooLarge) {
				t.Errorf("Put = %v, want ErrTooLarge", err)
			}
			if err := c.store.Create(ctx, "five", []byte("12345")); !errors.Is(err, storage.ErrTooLarge) {
				t.Errorf("Create = %v, want ErrTooLarge", err)
			}
			if _, err := c.store.Stat(ctx, "five"); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Stat of the refused object = %v, want ErrNotFound", err)
			}
			c.limit(3)
			if _, err := c.store.Get(ctx, "four"); !errors.Is(err, storage.ErrTooLarge) {
				t.Errorf("Get = %v, want ErrTooLarge", err)
			}
		})
	}
}
