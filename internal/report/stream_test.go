package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"testing"

	"ddiff/internal/report/reporttest"
	"ddiff/restore/item"
)

// heapBytes returns the number of heap bytes in use.
func heapBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// peakStore is a store that measures the heap at each write.
type peakStore struct {
	*reporttest.Memory
	peak uint64
}

func (s *peakStore) Put(ctx context.Context, key string, data []byte) error {
	s.peak = max(s.peak, heapBytes())
	return s.Memory.Put(ctx, key, data)
}

// synthetic yields the results of two methods on n images in the order of a manifest. It raises peak to the number of
// heap bytes in use.
func synthetic(n int, peak *uint64) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		for i := range n {
			if i%20_000 == 0 {
				*peak = max(*peak, heapBytes())
			}
			for m, method := range []string{"ddiff", "ddiff-hqs"} {
				r := item.Result{Outcome: item.OutcomeDone, Seconds: 2, Steps: 100}
				r.Item = item.Item{
					ID: fmt.Sprintf("%064d", 2*i+m), Index: 2*i + m, Name: "image" + strconv.Itoa(i) + ".png",
					Task: "hdr", Method: method, Width: 256, Height: 256, Seed: 7,
				}
				reporttest.Scored(20+float64(i%100)/10+float64(m), 15, 0.5, 0.001)(&r)
				if i%1000 == 0 {
					reporttest.Ended(item.OutcomeFailed, "decode: unexpected EOF")(&r)
				}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// TestMemoryOfWrite bounds the memory for a result.
func TestMemoryOfWrite(t *testing.T) {
	const images = 10_000
	store := &peakStore{Memory: reporttest.NewMemory()}
	start := heapBytes()
	s, err := Write(t.Context(), store, testCampaign(), synthetic(images, &store.peak))
	reporttest.Must(t, err)
	if lines := bytes.Count(store.Files[KeyCSV], []byte("\n")); lines != 2*images+1 {
		t.Errorf("%s has %d lines, want %d", KeyCSV, lines, 2*images+1)
	}
	if s.Items != 2*images || s.Failed != images/500 || s.Rows[1].PSNR().N != images-images/1000 {
		t.Errorf("%d items, %d failed, %d PSNR", s.Items, s.Failed, s.Rows[1].PSNR().N)
	}
	// The methods differ by 1 dB on each image.
	if d := s.Comparisons[0].Difference; d.N != images-images/1000 || !(d.Mean <= -1+1e-9) || !(d.Mean >= -1-1e-9) || s.Comparisons[0].LeftOut != images/1000 {
		t.Errorf("difference %+v, %d left out", d, s.Comparisons[0].LeftOut)
	}
	clear(store.Files)
	runtime.GC() // empties the pools of the encoders, in two rounds
	end := heapBytes()
	t.Logf("heap: %d MiB at the start, %d MiB at the highest, %d MiB at the end", start>>20, store.peak>>20, end>>20)
	if store.peak > start+2*images*2048 || end > start+4<<20 {
		t.Errorf("heap: %d bytes at the start, %d at the highest, %d at the end", start, store.peak, end)
	}
}

func TestWriteReturnsTheErrorOfTheStream(t *testing.T) {
	t.Parallel()
	want := errors.New("connection lost")
	store := reporttest.NewMemory()
	_, err := Write(t.Context(), store, testCampaign(), func(yield func(item.Result, error) bool) {
		if yield(reporttest.Result(t, "hdr", "ddiff", "a.png", 0), nil) {
			yield(item.Result{}, want)
		}
	})
	if !errors.Is(err, want) || len(store.Files) != 0 {
		t.Errorf("error = %v, %d files", err, len(store.Files))
	}
}
