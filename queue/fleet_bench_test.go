package queue_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"ddiff/queue"
)

// heap returns the bytes of live objects.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkLeasesOfFleet leases batches of 64 until one campaign has 320,000 leases, those of 5,000 workers, and extends all
// of them. It reports the server's memory per lease, and the rates of leases and extensions. Run it with -benchtime 1x.
func BenchmarkLeasesOfFleet(b *testing.B) {
	const leases, batch, window = 320_000, 64, 4096
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		server, err := queue.StartEmbedded(b.Context(), queue.EmbeddedConfig{Dir: b.TempDir()})
		check(err)
		b.Cleanup(server.Stop)
		nc, err := server.Connect()
		check(err)
		q, err := queue.Open(b.Context(), nc, queue.Config{Campaign: "fleet", AckWait: time.Minute})
		check(err)
		before := heap()
		for at := 0; at < leases; at += window {
			work := make([]queue.Work, min(window, leases-at))
			for i := range work {
				work[i] = queue.Work{Class: "c", ID: fmt.Sprint(at + i), Payload: make([]byte, 1024)}
			}
			check(q.PublishBatch(b.Context(), work))
		}
		published := heap()
		begin := time.Now()
		var mu sync.Mutex
		var all []*queue.Lease
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					some, err := q.Lease(b.Context(), batch, time.Second)
					if err != nil {
						b.Error(err)
					}
					mu.Lock()
					all = append(all, some...)
					mu.Unlock()
					if len(some) == 0 {
						return
					}
				}
			})
		}
		wg.Wait()
		if len(all) != leases {
			b.Fatalf("%d leases, want %d", len(all), leases)
		}
		b.ReportMetric(leases/time.Since(begin).Seconds(), "leases/s")
		begin = time.Now()
		for at := 0; at < leases; at += batch {
			check(queue.Extend(b.Context(), all[at:at+batch]...))
		}
		b.ReportMetric(leases/time.Since(begin).Seconds(), "extensions/s")
		begin = time.Now()
		check(all[0].Ack(b.Context())) // after the server has processed all extensions
		b.ReportMetric(time.Since(begin).Seconds(), "s/ack")
		all = nil
		b.ReportMetric((heap()-published)/leases, "B/lease")
		b.ReportMetric((published-before)/leases, "B/item")
	}
}
