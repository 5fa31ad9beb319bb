package storage_test

import (
	"fmt"
	"testing"

	"ddiff/storage"
)

// BenchmarkDir measures calls for objects of 10 KB, each in a folder of its own, as restored images of 64 pixels are. List is one call for
// 1000 of them.
func BenchmarkDir(b *testing.B) {
	d, err := storage.NewDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ctx, data := b.Context(), make([]byte, 10_000)
	key := func(i int) string { return fmt.Sprintf("items/%064d/restored.png", i) }
	created := 0
	create := func() error {
		created++
		return d.Create(ctx, key(created-1), data)
	}
	for range 1000 {
		if err := create(); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		call func(i int) error
	}{
		{"Get", func(i int) error { _, err := d.Get(ctx, key(i%1000)); return err }},
		{"Stat", func(i int) error { _, err := d.Stat(ctx, key(i%1000)); return err }},
		{"List", func(int) (err error) {
			for _, err = range d.List(ctx, "items/") {
			}
			return err
		}},
		{"Put", func(i int) error { return d.Put(ctx, key(i%1000), data) }},
		{"Create", func(int) error { return create() }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := c.call(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
