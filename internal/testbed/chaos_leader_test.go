package testbed

import (
	"context"
	"fmt"
	"time"
)

// stepDownWithin is the deadline for a leader that alone cannot reach the store.
const stepDownWithin = 45 * time.Second

// refuseLeader refuses the keys of the leader until another coordinator leads.
func (f *fleet) refuseLeader(ctx context.Context, x fault, began func(target string)) error {
	leader, other, err := f.reserveLeader(ctx, true)
	if err != nil {
		return err
	}
	defer f.give(leader, other)
	key := x.key().of(leader.Name)
	began(fmt.Sprintf("%s: %v", leader.Name, key))
	defer f.network.refuse(key)()
	begin := time.Now()
	for time.Since(begin) < stepDownWithin && ctx.Err() == nil {
		sleep(ctx, 500*time.Millisecond)
		if !other.Running() { // it may have started during an earlier fault of the store
			if err := other.Start(); err != nil {
				return err
			}
			begin = time.Now()
		}
		if now, err := f.c.Leader(ctx); err == nil && now != leader {
			f.say("%s leads %.1f s after the keys of %s were refused", now.Name, time.Since(begin).Seconds(), leader.Name)
			return nil
		}
	}
	f.problem(fmt.Errorf("fault %v: %s still leads after %v beside a healthy standby", x, leader.Name, stepDownWithin))
	return nil
}

// takeOver kills the leader while the store is unavailable. The standby must survive and lead afterwards.
func (f *fleet) takeOver(ctx context.Context, x fault, began func(target string)) error {
	leader, other, err := f.reserveLeader(ctx, true)
	if err != nil {
		return err
	}
	defer f.give(leader, other)
	// A process that cannot reach the store at its own start ends, as the documentation says; a standby is past its start.
	if err := other.WaitLog(ctx, "coordinator is ready"); err != nil {
		return err
	}
	began(fmt.Sprintf("%s: %v", leader.Name, unavailable))
	end := f.network.refuse(unavailable)
	defer end()
	leader.Kill()
	sleep(ctx, f.term+x.lasts(4*time.Second, 8*time.Second))
	if !other.Running() && ctx.Err() == nil {
		f.problem(fmt.Errorf("fault %v: the standby %s ended with code %d while it took over", x, other.Name, other.Code()))
		if err := other.Start(); err != nil {
			return err
		}
	}
	end()
	return leader.Start()
}

// problem records a violation that does not stop the run.
func (f *fleet) problem(err error) {
	f.say("%v", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, err)
}
