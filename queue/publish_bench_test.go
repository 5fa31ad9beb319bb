package queue_test

import (
	"fmt"
	"testing"

	"ddiff/queue"
)

// BenchmarkPublishBatch publishes windows of 5,000 items of 1 KB to an embedded server, as a coordinator does; one
// operation is one item.
func BenchmarkPublishBatch(b *testing.B) {
	for _, c := range []struct {
		name             string
		always, unsynced bool
	}{{"lazy", false, false}, {"unsynced", true, true}, {"always", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			server, err := queue.StartEmbedded(b.Context(), queue.EmbeddedConfig{Dir: b.TempDir(), SyncAlways: c.always})
			must(b, err)
			defer server.Stop()
			nc, err := server.Connect()
			must(b, err)
			must(b, queue.Setup(b.Context(), nc, queue.SetupConfig{UnsyncedWork: c.unsynced}))
			q, err := queue.Open(b.Context(), nc, queue.Config{Campaign: "bench"})
			must(b, err)
			payload := make([]byte, 1000)
			b.ResetTimer()
			for begin := 0; begin < b.N; begin += 5000 {
				batch := make([]queue.Work, min(5000, b.N-begin))
				for i := range batch {
					batch[i] = queue.Work{Class: "sr4x-256x256", ID: fmt.Sprintf("%064x", begin+i), Payload: payload}
				}
				must(b, q.PublishBatch(b.Context(), batch))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}
