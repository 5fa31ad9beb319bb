package storage_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"ddiff/storage"
)

// BenchmarkDirCreate writes objects of 2 KiB as a campaign does: one directory per item with
// one or five files. writers is the number of goroutines per CPU. TMPDIR selects the disk. A disk
// that syncs is bound by two flushes per object, which concurrent writers share.
func BenchmarkDirCreate(b *testing.B) {
	for _, writers := range []int{1, 8, 32} {
		for _, files := range []int{1, 5} {
			b.Run(fmt.Sprintf("writers=%d/files=%d", writers, files), func(b *testing.B) {
				d, err := storage.NewDir(b.TempDir())
				must(b, err)
				data := make([]byte, 2048)
				var next atomic.Int64
				b.SetParallelism(writers)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						item := next.Add(1)
						for f := range files {
							if err := d.Create(b.Context(), fmt.Sprintf("items/%016x/%d.json", item, f), data); err != nil {
								b.Error(err)
							}
						}
					}
				})
				b.ReportMetric(float64(b.N*files)/b.Elapsed().Seconds(), "objects/s")
			})
		}
	}
}
