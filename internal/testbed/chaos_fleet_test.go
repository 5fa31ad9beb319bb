package testbed

import (
	"context"
	"fmt"
	"sync"
	"syscall"
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

	nats     sync.Mutex // held while a server is down: at least two of three run
	store    sync.Mutex // one fault of storage at a time
	mu       sync.Mutex
	down     map[*Process]bool
	revivals int
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
	for {
		f.mu.Lock()
		var free []*Process
		for _, p := range from {
			if !f.down[p] && p.Running() {
				free = append(free, p)
			}
		}
		if len(free) > 0 {
			p := free[pick%uint64(len(free))]
			f.down[p] = true
			f.mu.Unlock()
			return p, nil
		}
		f.mu.Unlock()
		sleep(ctx, 50*time.Millisecond)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (f *fleet) give(p *Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[p] = false
}

// inject performs a fault and returns after its end. It calls began at its beginning.
func (f *fleet) inject(ctx context.Context, x fault, began func(target string)) error {
	switch x.kind {
	case workerKill, workerSuspend, workerDrain, diskFull:
		from := f.c.Workers
		if x.kind == diskFull {
			from = from[:1] // has its own disk
		}
		return f.hit(ctx, x, from, began)
	case coordinatorKill, coordinatorSuspend:
		return f.hit(ctx, x, f.c.Coordinators, began)
	case clock:
		return f.hit(ctx, x, f.all(), began)
	case natsKill, natsLeaderKill, streamDelete:
		f.nats.Lock()
		defer f.nats.Unlock()
		if x.kind == streamDelete {
			return f.deleteStream(ctx, began)
		}
		return f.killServer(ctx, x, began)
	}
	f.store.Lock()
	defer f.store.Unlock()
	began("s3")
	d := x.lasts(2*time.Second, 6*time.Second)
	switch x.kind {
	case s3Unavailable:
		f.network.refuse(ctx, d)
	case s3Hang:
		return f.network.hang(ctx, d)
	case s3Reset:
		return f.network.reset(ctx, d)
	}
	return nil
}

// hit performs a fault on one of several processes.
func (f *fleet) hit(ctx context.Context, x fault, from []*Process, began func(target string)) error {
	p, err := f.reserve(ctx, from, x.pick)
	if err != nil {
		return err
	}
	defer f.give(p)
	began(p.Name)
	pause := func(from, to time.Duration) { sleep(ctx, x.lasts(from, to)) }
	switch x.kind {
	case workerKill, coordinatorKill:
		p.Kill()
		pause(300*time.Millisecond, 3*time.Second)
		return p.Start()
	case workerDrain:
		if code, err := p.Stop(drainWithin); err != nil {
			return err
		} else if code != 0 {
			return fmt.Errorf("%s did not drain: exit code %d", p.Name, code)
		}
		pause(0, 2*time.Second)
		return p.Start()
	case workerSuspend:
		return suspend(p, func() { pause(f.lease*5/4, f.lease*2) })
	case coordinatorSuspend:
		return suspend(p, func() { pause(f.term*5/4, f.term*3) })
	case diskFull:
		if err := p.FillDisk(); err != nil {
			return err
		}
		pause(3*time.Second, 8*time.Second)
		return p.FreeDisk()
	case clock:
		if err := p.MoveClock(x.shift); err != nil {
			return err
		}
		pause(3*time.Second, 8*time.Second)
		return p.MoveClock(0)
	}
	return fmt.Errorf("unknown fault %s", x.kind)
}

// suspend suspends a process for a while.
func suspend(p *Process, pause func()) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause()
	return p.Signal(syscall.SIGCONT)
}

// killServer kills a NATS server, restarts it and waits until it has caught up.
func (f *fleet) killServer(ctx context.Context, x fault, began func(target string)) error {
	var leader int
	var err error
	for range 100 { // an election may be under way
		if leader, err = f.c.NATS.StreamLeader(ctx, StreamWork); err == nil || ctx.Err() != nil {
			break
		}
		sleep(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return err
	}
	i := leader
	if n := len(f.c.NATS.Servers); x.kind == natsKill {
		i = (leader + 1 + int(x.pick%uint64(n-1))) % n
	}
	p := f.c.NATS.Servers[i]
	began(p.Name)
	p.Kill()
	sleep(ctx, x.lasts(time.Second, 5*time.Second))
	if err := p.Start(); err != nil {
		return err
	}
	return f.c.NATS.Ready(ctx, i)
}

// deleteStream deletes the work stream.
func (f *fleet) deleteStream(ctx context.Context, began func(target string)) error {
	var err error
	for range 100 { // another fault may just have deleted it
		if err = f.c.NATS.DeleteStream(ctx, StreamWork); err == nil {
			began(StreamWork)
			return nil
		}
		sleep(ctx, 200*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}
