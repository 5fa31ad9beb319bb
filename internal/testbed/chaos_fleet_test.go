package testbed

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// fleet holds the target processes of faults. A process has one fault at a time. The fleet restarts
// a process that exits without a fault, as a supervisor would.
type fleet struct {
	c       *Cluster
	network *network
	say     func(format string, args ...any)
	lease   time.Duration
	term    time.Duration
	// campaign and damaged are the campaigns that verbs act on.
	campaign, damaged string

	nats     sync.Mutex // held while a server is down: at least two of three run, except in an outage
	store    sync.Mutex // one fault of storage at a time; locked before coordinators are reserved
	mu       sync.Mutex
	down     map[*Process]bool
	revivals int
	problems []error
}

// drainWithin is the deadline for the end of a stopped worker.
const drainWithin = 40 * time.Second

// supervise restarts processes that exited without a fault, until ctx ends.
func (f *fleet) supervise(ctx context.Context) {
	for tick := time.NewTicker(2 * time.Second); ctx.Err() == nil; {
		f.mu.Lock()
		for _, p := range f.all() {
			if !f.down[p] && !p.Running() {
				f.revivals++
				f.say("%s exited with code %d, restarting", p.Name, p.Code())
				if err := p.Start(); err != nil {
					f.say("%v", err)
				}
			}
		}
		f.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
		}
	}
}

func (f *fleet) all() []*Process {
	return append(append([]*Process{}, f.c.Coordinators...), f.c.Workers...)
}

// reserve waits for a process without a fault and reserves it.
func (f *fleet) reserve(ctx context.Context, from []*Process, pick uint64) (*Process, error) {
	for ctx.Err() == nil {
		var free []*Process
		for _, p := range from {
			if f.reserveAll(p) {
				f.give(p)
				free = append(free, p)
			}
		}
		if len(free) > 0 {
			if p := free[pick%uint64(len(free))]; f.reserveAll(p) {
				return p, nil
			}
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return nil, context.Cause(ctx)
}

// reserveAll reserves processes if all of them run without a fault.
func (f *fleet) reserveAll(all ...*Process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range all {
		if f.down[p] || !p.Running() {
			return false
		}
	}
	for _, p := range all {
		f.down[p] = true
	}
	return true
}

func (f *fleet) give(all ...*Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range all {
		f.down[p] = false
	}
}

// reserveLeader waits for a leader without a fault and reserves it, and the other coordinator too if standby is set.
func (f *fleet) reserveLeader(ctx context.Context, standby bool) (leader, other *Process, err error) {
	for ctx.Err() == nil {
		if leader, err = f.c.Leader(ctx); err == nil {
			reserved := []*Process{leader}
			if other = f.c.other(leader); standby {
				reserved = append(reserved, other)
			}
			if f.reserveAll(reserved...) {
				return leader, other, nil
			}
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return nil, nil, context.Cause(ctx)
}

// other returns another coordinator.
func (c *Cluster) other(than *Process) *Process {
	for _, p := range c.Coordinators {
		if p != than {
			return p
		}
	}
	return nil
}

// inject performs a fault and returns after its end. It calls began at its beginning.
func (f *fleet) inject(ctx context.Context, x fault, began func(target string)) error {
	switch x.kind {
	case workerKill, workerSuspend, workerDrain, workerKeys, priorDamage:
		return f.hit(ctx, x, f.c.Workers, began)
	case diskFull:
		return f.hit(ctx, x, f.c.Workers[:1], began) // has its own disk
	case coordinatorKill, coordinatorSuspend:
		return f.hit(ctx, x, f.c.Coordinators, began)
	case clock:
		return f.hit(ctx, x, f.all(), began)
	case natsKill, natsLeaderKill, streamDelete, natsOutage:
		f.nats.Lock()
		defer f.nats.Unlock()
		return f.hitNATS(ctx, x, began)
	case verbCancel, verbResume, verbPause, verbRetry:
		return f.command(ctx, x, began)
	}
	f.store.Lock()
	defer f.store.Unlock()
	switch x.kind {
	case leaderKeys:
		return f.refuseLeader(ctx, x, began)
	case takeover:
		return f.takeOver(ctx, x, began)
	}
	return f.hitStore(ctx, x, began)
}

// disturbed reports whether a fault of NATS or of storage is under way.
func (f *fleet) disturbed() bool {
	for _, m := range []*sync.Mutex{&f.nats, &f.store} {
		if !m.TryLock() {
			return true
		}
		m.Unlock()
	}
	return false
}

// hitStore performs a fault of storage.
func (f *fleet) hitStore(ctx context.Context, x fault, began func(target string)) error {
	brief, long := x.lasts(2*time.Second, 6*time.Second), x.lasts(outageLeast, outageMost)
	refuse := func(r refusal, d time.Duration) error {
		began(r.String())
		defer f.network.refuse(r)()
		sleep(ctx, d)
		return nil
	}
	switch x.kind {
	case s3Unavailable:
		return refuse(unavailable, brief)
	case s3Keys:
		return refuse(x.key(), brief)
	case s3Outage:
		return refuse(unavailable, long)
	case s3KeysOutage:
		return refuse(x.key(), long)
	case s3Hang:
		began("s3")
		return f.network.hang(ctx, brief)
	case s3HangOutage:
		began("s3")
		return f.network.hang(ctx, long)
	case s3Reset:
		began("s3")
		return f.network.reset(ctx, brief)
	}
	return fmt.Errorf("unknown fault %s", x.kind)
}
