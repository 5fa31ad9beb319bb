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

// TestPeers: a count of the other workers is used until it is ten seconds old.
func TestPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &workersBoard{}
		p := &Peers{Board: b}
		for i, pass := range []time.Duration{0, peersAge - 1, 1, peersAge - 1, 1} {
			time.Sleep(pass)
			b.workers = i
			reads, want := []int{1, 1, 2, 2, 3}[i], []int{0, 0, 1, 1, 3}[i]
			if n, err := p.Others(t.Context()); n != want || err != nil || b.calls != reads {
				t.Errorf("call %d: %d others, want %d; %d listings: %v", i, n, want, b.calls, err)
			}
		}
	})
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
