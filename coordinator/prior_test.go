package coordinator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"ddiff/restore/prior"
)

func TestPriorsAreSharedAndReleased(t *testing.T) {
	t.Parallel()
	p := newPriors()
	var reads, reading atomic.Int32
	read := func(context.Context) (*prior.Description, error) {
		if reading.Add(1) > 1 {
			t.Error("two files are read at once")
		}
		defer reading.Add(-1)
		reads.Add(1)
		return &prior.Description{SHA256: "aa"}, nil
	}
	const users = 20
	var all [users]*prior.Description
	var releases [users]func()
	var group errgroup.Group
	for i := range users {
		group.Go(func() (err error) {
			all[i], releases[i], err = p.acquire(t.Context(), "aa", read)
			return err
		})
	}
	must(t, group.Wait())
	// A campaign that does not know its digest reads the file.
	unknown, release, err := p.acquire(t.Context(), "", read)
	must(t, err)
	if n := reads.Load(); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
	for i, d := range all {
		if d != unknown {
			t.Errorf("user %d has a description of its own", i)
		}
		releases[i]()
		releases[i]() // no effect
	}
	if len(p.byName) != 1 {
		t.Error("a description with a user was dropped")
	}
	if release(); len(p.byName) != 0 {
		t.Errorf("%d descriptions remain without a user", len(p.byName))
	}
}

func TestPriorsErrorIsNotShared(t *testing.T) {
	t.Parallel()
	p := newPriors()
	broken := errors.New("broken")
	fail := func(context.Context) (*prior.Description, error) { return nil, broken }
	if _, _, err := p.acquire(t.Context(), "aa", fail); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	good := func(context.Context) (*prior.Description, error) { return &prior.Description{SHA256: "aa"}, nil }
	if d, _, err := p.acquire(t.Context(), "aa", good); err != nil || d == nil {
		t.Errorf("after an error: %v, %v", d, err)
	}
}
