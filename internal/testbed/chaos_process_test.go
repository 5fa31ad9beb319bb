package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

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
		disturbed := f.disturbed()
		code, err := p.Stop(drainWithin)
		if err != nil {
			return err
		}
		// A worker cannot release its items while NATS or the store is away.
		expired := (disturbed || f.disturbed()) && strings.Contains(p.Log(), "the grace period expired")
		if code != 0 && !expired {
			return fmt.Errorf("%s did not drain: exit code %d", p.Name, code)
		}
		pause(0, 2*time.Second)
		return p.Start()
	case workerSuspend:
		return suspend(p, func() { pause(f.lease*5/4, f.lease*2) })
	case coordinatorSuspend:
		return suspend(p, func() { pause(f.term*5/4, f.term*3) })
	case workerKeys:
		// The worker is refused, and the others are not.
		defer f.network.refuse(x.key().of(p.Name))()
		pause(10*time.Second, 20*time.Second)
		return nil
	case priorDamage:
		p.Kill()
		if err := f.c.damagePriors(p.Name); err != nil {
			return err
		}
		return p.Start()
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

// damagePriors inverts a byte of each prior in the cache of a process. A cache on a disk of its own is empty after a
// restart.
func (c *Cluster) damagePriors(name string) error {
	found, err := filepath.Glob(filepath.Join(c.Cache(name), "ddiff", "priors", "*.onnx"))
	if err != nil {
		return err
	}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 0xff
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
