package raster

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestBudgetRefusesByHeader is not parallel because it measures allocations.
func TestBudgetRefusesByHeader(t *testing.T) {
	b := NewBudget(256 << 20)
	data := pngHeader(8192, 8192) // 2 GiB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := b.Reserve(t.Context(), data)
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
		t.Errorf("%d bytes were allocated for a header", bytes)
	}
	if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "2048 MiB") || !strings.Contains(err.Error(), "256 MiB") {
		t.Errorf("error %v, want ErrBudget with need and limit", err)
	}
	for name, data := range map[string][]byte{"too large": pngHeader(30000, 30000), "not an image": []byte("text"), "empty": nil} {
		release, err := b.Reserve(t.Context(), data)
		if err != nil {
			t.Fatalf("%s: %v; the decoder reports the error", name, err)
		}
		release()
	}
	var none *Budget
	if _, err := none.Reserve(t.Context(), data); err != nil {
		t.Errorf("no budget: %v", err)
	}
}

// TestBudgetIsShared: a second decoder waits for the memory of the first.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	b := NewBudget(3 << 20)
	data := pngHeader(256, 256) // 2 MiB
	release, err := b.Reserve(t.Context(), data)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Reserve(ctx, data); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want a wait until the deadline", err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := b.Reserve(t.Context(), data)
		second <- err
	}()
	release()
	must(t, <-second)
}

func TestBudgetOfArray(t *testing.T) {
	t.Parallel()
	data, err := EncodeNPY([]int{1 << 18}, make([]float32, 1<<18))
	must(t, err)
	if _, err := NewBudget(1<<20).Reserve(t.Context(), data); !errors.Is(err, ErrBudget) {
		t.Errorf("error %v, want ErrBudget", err)
	}
	if _, err := NewBudget(8<<20).Reserve(t.Context(), data); err != nil {
		t.Error(err)
	}
}
