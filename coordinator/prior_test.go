package coordinator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/restore/prior"
)

func TestPriorsAreShared(t *testing.T) {
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
	var group errgroup.Group
	for i := range users {
		group.Go(func() (err error) {
			all[i], err = p.open(t.Context(), "aa", read)
			return err
		})
	}
	must(t, group.Wait())
	// A campaign that does not know its digest reads the file.
	unknown, err := p.open(t.Context(), "", read)
	must(t, err)
	if n := reads.Load(); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
	for i, d := range all {
		if d != unknown {
			t.Errorf("user %d has a description of its own", i)
		}
	}
}

func TestPriorsErrorIsNotShared(t *testing.T) {
	t.Parallel()
	p := newPriors()
	broken := errors.New("broken")
	fail := func(context.Context) (*prior.Description, error) { return nil, broken }
	if _, err := p.open(t.Context(), "aa", fail); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	good := func(context.Context) (*prior.Description, error) { return &prior.Description{SHA256: "aa"}, nil }
	if d, err := p.open(t.Context(), "aa", good); err != nil || d == nil {
		t.Errorf("after an error: %v, %v", d, err)
	}
}
