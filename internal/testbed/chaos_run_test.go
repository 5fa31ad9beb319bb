package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"ddiff/internal/record"
)

// The timeouts of the cluster, shorter than the faults.
const (
	lease = 4 * time.Second
	term  = 3 * time.Second
	stall = 3 * time.Second
)

// cacheBytes is the size of the disk of one worker's cache. The prior takes a third of it.
const cacheBytes = 32 << 20

// workerArgs are the flags of the workers beside their names and threads.
var workerArgs = []string{"--batch", "2", "--nats-wait", "1m", "--log-format", "json"}

// session is the cluster of one seed.
type session struct {
	*journalist
	o         chaosOptions
	dir       string
	reference reference
	plans     plans

	c     *Cluster
	fleet *fleet

	soundID, damagedID, shardingID string
	journal                        journal
}

// run runs the campaigns under faults and checks them.
func (s *session) run(ctx context.Context) (f figures, err error) {
	defer caught(&err)
	s.c, err = Start(ctx, Options{
		Dir: filepath.Join(s.dir, "cluster"), Program: s.o.program, Lease: lease, Election: term, Stall: stall,
		NATS: NATSOptions{Servers: 3, Secure: true},
	})
	defer s.c.Stop()
	check(err)
	check(s.disturbed(ctx))
	return s.check(ctx)
}

// disturbed runs the campaigns on the cluster under faults.
func (s *session) disturbed(ctx context.Context) (err error) {
	defer caught(&err)
	network := try(newNetwork(ctx, s.c.S3.Address))
	defer network.close()
	s.c.Through(network.address)
	for _, p := range s.plans.all() {
		files := map[string][]byte{}
		for name, data := range p.images {
			files[p.name+"/"+name] = data
		}
		check(s.c.PutImages(ctx, files))
	}
	check(s.populate(ctx))
	s.fleet = &fleet{c: s.c, network: network, say: s.say, lease: lease, term: term, down: map[*Process]bool{}}
	watched, stop := context.WithCancel(ctx)
	var supervisor sync.WaitGroup
	supervisor.Go(func() { s.fleet.supervise(watched) })
	defer supervisor.Wait()
	defer stop()

	s.soundID = try(s.submit(ctx, s.plans.sound))
	s.damagedID = try(s.submit(ctx, s.plans.damaged))
	s.fleet.campaign, s.fleet.damaged = s.soundID, s.damagedID
	s.say("submitted %s and %s", s.soundID, s.damagedID)
	check(s.submitUnderFault(ctx))
	faults := drawFaults(s.o.seed, s.o.faults, s.plans.sound.items(), !s.o.brief)
	check(s.injectAll(ctx, faults))
	s.say("all faults are over, %d of %d items have a result", s.c.Settled(s.soundID), s.plans.sound.items())
	return s.finish(ctx)
}

// populate starts coordinators and workers.
func (s *session) populate(ctx context.Context) error {
	for range 2 {
		if _, err := s.c.AddCoordinator(ctx, "--nats-wait", "1m"); err != nil {
			return err
		}
	}
	for i := range s.o.workers {
		p := s.c.NewWorker(workerArgs...)
		if i == 0 {
			if err := p.OwnDisk(s.c.Cache(p.Name), cacheBytes); err != nil {
				s.say("%v; while its disk is full it cannot write files of more than 4 MiB", err)
			}
		}
		if err := p.Start(); err != nil {
			return err
		}
	}
	for _, p := range s.c.Workers {
		if err := p.WaitLog(ctx, "worker is ready"); err != nil {
			return err
		}
	}
	s.say("started 3 nats-server, versitygw, 2 coordinators and %d workers", s.o.workers)
	return nil
}

// submit submits a campaign to the cluster and returns its id.
func (s *session) submit(ctx context.Context, p plan) (string, error) {
	file := filepath.Join(s.dir, p.name+".yaml")
	base, query, _ := strings.Cut(s.c.Images(), "?")
	if err := p.write(file, base+"/"+p.name+"/?"+query); err != nil {
		return "", err
	}
	out, err := s.c.Output(ctx, "submit", file, "--canary", strconv.Itoa(p.canary))
	return strings.TrimSpace(out), err
}

// injectAll performs each fault when it is due and waits for the end of all.
func (s *session) injectAll(ctx context.Context, faults []fault) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var under sync.WaitGroup
	for _, x := range faults {
		for begin := time.Now(); s.c.Settled(s.soundID) < x.due && ctx.Err() == nil; sleep(ctx, 50*time.Millisecond) {
			if time.Since(begin) > idleLimit {
				s.resumeRejected(ctx)
				begin = time.Now()
			}
		}
		sleep(ctx, x.delay)
		if ctx.Err() != nil {
			break
		}
		under.Go(func() {
			err := s.fleet.inject(ctx, x, func(target string) { s.note(x, target) })
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("fault %v: %w", x, err))
			}
		})
	}
	under.Wait()
	return context.Cause(ctx)
}

// idleLimit is the time without the next fault after which the campaigns are checked.
const idleLimit = 15 * time.Second

// resumeRejected resumes campaigns that were rejected, which is a problem: no fault is a property of a campaign.
func (s *session) resumeRejected(ctx context.Context) {
	for _, id := range []string{s.soundID, s.damagedID, s.shardingID} {
		rec, err := s.c.Record(ctx, id)
		if err != nil || rec.Phase != record.PhaseRejected {
			continue
		}
		s.fleet.problem(fmt.Errorf("campaign %s was rejected: %s", id, rec.Reason))
		if err := s.fleet.do(ctx, "resume", id); err != nil {
			s.say("%v", err)
		}
	}
}

// note records the beginning of a fault.
func (s *session) note(x fault, target string) {
	s.journal.note(x, target)
	s.say("fault %v: %s (%d results)", x, target, s.c.Settled(s.soundID))
}

// finish waits for the end of all campaigns.
func (s *session) finish(ctx context.Context) error {
	s.resumeRejected(ctx)
	for _, id := range []string{s.soundID, s.damagedID, s.shardingID} {
		out, err := s.c.Output(ctx, "status", "--watch", id)
		if err != nil && !strings.HasPrefix(lastLine(out), "done=") {
			return fmt.Errorf("watch campaign %s: %w", id, err)
		}
		s.say("%s: %s", id, lastLine(out))
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// count returns a number from a line like "done=1 failed=2".
func count(line, name string) int {
	m := regexp.MustCompile(`(?:^| )` + name + `=(\d+)`).FindStringSubmatch(line)
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return -1
	}
	return n
}
