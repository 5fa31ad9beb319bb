package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// verbWithin is the deadline of a verb, with repetitions.
const verbWithin = 2 * time.Minute

// command gives a verb and kills the leader right after it.
func (f *fleet) command(ctx context.Context, x fault, began func(target string)) error {
	leader, _, err := f.reserveLeader(ctx, false)
	if err != nil {
		return err
	}
	defer f.give(leader)
	began(leader.Name)
	soon := func(from, to time.Duration) { sleep(ctx, x.lasts(from, to)) }
	cancel := []string{"cancel", f.campaign}
	if x.pick%2 == 0 {
		cancel = append(cancel, "--now")
	}
	resume := []string{"resume", f.campaign}
	answered := make(chan error, 1)
	close(answered)
	switch x.kind {
	case verbCancel:
		err = f.do(ctx, cancel...)
		leader.Kill()
		soon(0, time.Second)
		err = errors.Join(err, f.do(ctx, resume...))
	case verbResume:
		err = f.do(ctx, cancel...)
		soon(0, 500*time.Millisecond)
		err = errors.Join(err, f.do(ctx, resume...))
		leader.Kill()
	case verbPause:
		err = f.do(ctx, "pause", f.campaign)
		leader.Kill()
		soon(0, time.Second)
		err = errors.Join(err, f.do(ctx, resume...))
	case verbRetry:
		answered = make(chan error, 1)
		go func() { answered <- f.do(ctx, "retry", f.damaged, "--failed") }()
		soon(50*time.Millisecond, time.Second)
		leader.Kill()
	}
	soon(300*time.Millisecond, 2*time.Second)
	err = errors.Join(err, leader.Start())
	return errors.Join(err, <-answered) // the next leader answers a retry
}

// do runs a verb until it succeeds, for at most two minutes, as a person would. A campaign that has already finished is
// no error.
func (f *fleet) do(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	for {
		_, err := f.c.Output(ctx, args...)
		if err == nil || strings.Contains(err.Error(), "has finished") {
			return nil
		}
		if sleep(ctx, 500*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("ddiff %s did not succeed within %v: %w", strings.Join(args, " "), verbWithin, err)
		}
	}
}
