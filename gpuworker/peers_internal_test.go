package gpuworker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

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
