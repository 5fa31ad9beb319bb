package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// workersBoard has a number of worker records.
type workersBoard struct {
	workers, calls int
	err            error
}

func (b *workersBoard) Keys(context.Context, string) ([]string, error) {
	b.calls++
	return make([]string, b.workers), b.err
}

// TestPeers counts the other workers once for calls within ten seconds.
func TestPeers(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{0: 0, 1: 0, 2: 1, 7: 6} {
		b := &workersBoard{workers: workers}
		p := &Peers{Board: b}
		for range 2 {
			if n, err := p.Others(t.Context()); n != want || err != nil {
				t.Errorf("%d workers: %d others, error %v", workers, n, err)
			}
		}
		if b.calls != 1 {
			t.Errorf("%d workers: the board was read %d times", workers, b.calls)
		}
	}
	b := &workersBoard{workers: 3, err: errors.New("no responders")}
	p := &Peers{Board: b}
	if n, err := p.Others(t.Context()); err == nil || !strings.Contains(err.Error(), "count workers: no responders") {
		t.Errorf("%d others, error %v", n, err)
	}
	b.err = nil
	if n, err := p.Others(t.Context()); n != 2 || err != nil {
		t.Errorf("after an error: %d others, error %v", n, err)
	}
}

// countedBoard counts its listings.
type countedBoard struct{ calls int }

func (b *countedBoard) Keys(context.Context, string) ([]string, error) {
	b.calls++
	return make([]string, b.calls), nil
}

// A count of workers is used until it is ten seconds old.
func TestAgeOfPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &countedBoard{}
		p := &Peers{Board: b}
		for i, pass := range []time.Duration{0, peersAge - 1, 1, peersAge - 1, 1} {
			time.Sleep(pass)
			want := []int{1, 1, 2, 2, 3}[i]
			if n, err := p.Others(t.Context()); n != want-1 || err != nil || b.calls != want {
				t.Errorf("call %d: %d others, %d listings, want %d: %v", i, n, b.calls, want, err)
			}
		}
	})
}
