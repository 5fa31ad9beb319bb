package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The timeouts of the cluster, shorter than the faults.
const (
	lease = 4 * time.Second
	term  = 3 * time.Second
	stall = 3 * time.Second
)

// cacheBytes is the size of the disk of one worker's cache. The prior takes a third of it.
const cacheBytes = 32 << 20

// session is one run of chaos.
type session struct {
	o     chaosOptions
	dir   string
	began time.Time
	c     *Cluster
	fleet *fleet

	sound, damaged     plan
	soundID, damagedID string
	journal            journal
	mu                 sync.Mutex // guards the output
}

func (s *session) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.o.out, "%6.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// run runs the campaigns with and without faults and prints the figures.
func runChaos(ctx context.Context, o chaosOptions) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	s := &session{o: o, dir: o.keep, began: time.Now()}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "ddiff-chaos-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	} else if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if s.sound, s.damaged, err = plans(ctx, o); err != nil {
		return err
	}
	s.say("seed %d: %d items, %d faults", o.seed, s.sound.items(), o.faults)
	s.c, err = Start(ctx, Options{
		Dir: filepath.Join(s.dir, "cluster"), Program: o.program, Lease: lease, Election: term, Stall: stall,
		NATS: NATSOptions{Servers: 3, Secure: true},
	})
	defer s.c.Stop()
	if err != nil {
		return err
	}
	if err := s.undisturbed(ctx); err != nil {
		return err
	}
	if err := s.disturbed(ctx); err != nil {
		return err
	}
	return s.check(ctx)
}

// reference returns the output of the undisturbed run of a campaign.
func (s *session) reference(p plan) string { return filepath.Join(s.dir, "reference", p.name) }

// undisturbed runs both campaigns in one process.
func (s *session) undisturbed(ctx context.Context) error {
	for _, p := range []plan{s.sound, s.damaged} {
		images, file := filepath.Join(s.dir, "images", p.name), filepath.Join(s.dir, p.name+"-reference.yaml")
		if err := errors.Join(p.writeImages(images), p.write(file, images)); err != nil {
			return err
		}
		begin := time.Now()
		out, err := s.c.Output(ctx, "run", file, "--quiet", "--threads", "1", "--batch", "2", "--device", "cpu", "--out", s.reference(p))
		last := lastLine(out)
		if err != nil && !strings.HasPrefix(last, "done=") {
			return fmt.Errorf("run campaign %s undisturbed: %w", p.name, err)
		}
		s.say("undisturbed run of %s: %s in %.1f s", p.name, last, time.Since(begin).Seconds())
	}
	return nil
}

// disturbed runs both campaigns on the cluster under faults.
func (s *session) disturbed(ctx context.Context) (err error) {
	network, err := newNetwork(ctx, s.c.S3.Address)
	if err != nil {
		return err
	}
	defer network.close()
	s.c.Through(network.address)
	for _, p := range []plan{s.sound, s.damaged} {
		files := map[string][]byte{}
		for name, data := range p.images {
			files[p.name+"/"+name] = data
		}
		if err := s.c.PutImages(ctx, files); err != nil {
			return err
		}
	}
	if err := s.populate(ctx); err != nil {
		return err
	}
	s.fleet = &fleet{c: s.c, network: network, say: s.say, lease: lease, term: term, down: map[*Process]bool{}}
	watched, stop := context.WithCancel(ctx)
	var supervisor sync.WaitGroup
	supervisor.Go(func() { s.fleet.supervise(watched) })
	defer supervisor.Wait()
	defer stop()

	if s.soundID, err = s.submit(ctx, s.sound); err != nil {
		return err
	}
	if s.damagedID, err = s.submit(ctx, s.damaged); err != nil {
		return err
	}
	s.say("submitted %s and %s", s.soundID, s.damagedID)
	faults := drawFaults(s.o.seed, s.o.faults, s.sound.items())
	if err := s.injectAll(ctx, faults); err != nil {
		return err
	}
	s.say("all faults are over, %d of %d items have a result", s.c.Settled(s.soundID), s.sound.items())
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
		p := s.c.NewWorker("--batch", "2", "--chunk", "5", "--nats-wait", "1m", "--log-format", "json")
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
		for s.c.Settled(s.soundID) < x.due && ctx.Err() == nil {
			sleep(ctx, 50*time.Millisecond)
		}
		sleep(ctx, x.delay)
		if ctx.Err() != nil {
			break
		}
		under.Go(func() {
			err := s.fleet.inject(ctx, x, func(target string) {
				s.journal.note(x, target)
				s.say("fault %v: %s (%d results)", x, target, s.c.Settled(s.soundID))
			})
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("fault %v: %w", x, err))
			}
		})
	}
	under.Wait()
	return context.Cause(ctx)
}

// finish waits for the end of both campaigns.
func (s *session) finish(ctx context.Context) error {
	for _, id := range []string{s.soundID, s.damagedID} {
		out, err := s.c.Output(ctx, "watch", id)
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
