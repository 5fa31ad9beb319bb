package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
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
	for b.Loop() {
		q := open(b, start(b, b.TempDir()), queue.Config{Campaign: "fleet", AckWait: time.Minute})
		before := heap()
		for at := 0; at < leases; at += window {
			work := make([]queue.Work, min(window, leases-at))
			for i := range work {
				work[i] = queue.Work{Class: "c", ID: fmt.Sprint(at + i), Payload: make([]byte, 1024)}
			}
			must(b, q.PublishBatch(b.Context(), work))
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
			must(b, queue.Extend(b.Context(), all[at:at+batch]...))
		}
		b.ReportMetric(leases/time.Since(begin).Seconds(), "extensions/s")
		begin = time.Now()
		must(b, all[0].Ack(b.Context())) // after the server has processed all extensions
		b.ReportMetric(time.Since(begin).Seconds(), "s/ack")
		all = nil
		b.ReportMetric((heap()-published)/leases, "B/lease")
		b.ReportMetric((published-before)/leases, "B/item")
	}
}

// BenchmarkWatchesOfFleet watches the campaigns with 1,000 readers while 1,000 workers write a record every ten seconds each. It
// reports the processor time of server and readers per second, and the time until all readers see a change. Run it with -benchtime 1x.
func BenchmarkWatchesOfFleet(b *testing.B) {
	const readers, workers, campaigns, connections = 1000, 1000, 20, 50
	for b.Loop() {
		server := start(b, b.TempDir())
		boards := make([]*queue.Board, connections)
		for i := range boards {
			nc, err := server.Connect()
			must(b, err)
			if i == 0 {
				must(b, queue.Setup(b.Context(), nc, queue.SetupConfig{}))
			}
			boards[i], err = queue.OpenBoard(b.Context(), nc)
			must(b, err)
		}
		writer := boards[0]
		for i := range campaigns {
			must(b, writer.Put(b.Context(), fmt.Sprintf("campaign.%d", i), make([]byte, 4096)))
		}
		ctx, cancel := context.WithCancel(b.Context())
		var ready, seen, all sync.WaitGroup
		ready.Add(readers)
		seen.Add(readers)
		for i := range readers {
			all.Go(func() {
				for c, err := range boards[i%connections].Watch(ctx, "campaign.") {
					if err != nil {
						b.Error(err)
					}
					switch {
					case c.Ready:
						ready.Done()
					case len(c.Data) == 1:
						seen.Done()
					}
				}
			})
		}
		begin := time.Now()
		ready.Wait()
		b.ReportMetric(time.Since(begin).Seconds(), "s/start")
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := writer.Put(ctx, fmt.Sprintf("worker.%d", i%workers), make([]byte, 1024)); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				time.Sleep(10 * time.Second / workers)
			}
		})
		time.Sleep(11 * time.Second) // every worker has a record
		begin, before := time.Now(), processorTime(b)
		time.Sleep(20 * time.Second) // what is measured
		b.ReportMetric((processorTime(b)-before).Seconds()/time.Since(begin).Seconds(), "cpu-s/s")
		begin = time.Now()
		must(b, writer.Put(ctx, "campaign.0", []byte{1}))
		seen.Wait()
		b.ReportMetric(time.Since(begin).Seconds(), "s/change")
		cancel()
		all.Wait()
	}
}

// processorTime is the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
