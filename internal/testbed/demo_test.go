package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// demoLimit is the deadline of the demonstration.
const demoLimit = 10 * time.Minute

// demo is the command behind `make cluster-demo`. It runs a whole cluster: three NATS servers with TLS and users, an S3
// server, two coordinators and three workers. During a campaign it kills one NATS server, the leading coordinator, and a
// worker. It ends with the line of `ddiff status --watch`
//
//	done=N failed=N dead=N lost=0
//
// and with exit code 0 if every item is done and none is lost.
func demo(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	keep := flags.String("keep", "", "a new directory for configuration, logs and results (default: a temporary one)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	return runDemo(ctx, *keep)
}

// campaign has 24 items of about one second each.
const campaign = `name: cluster-demo
dataset:
  path: %q
  size: 64
  fit: resize
tasks: [super_resolution, inpaint_random, gaussian_deblur, hdr]
steps: 100
attempts: 10
`

// items is the number of items of the campaign.
const items = 24

// runDemo is the demonstration.
func runDemo(ctx context.Context, dir string) (err error) {
	defer caught(&err)
	if dir == "" {
		dir = try(os.MkdirTemp("", "ddiff-cluster-"))
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}

	say("building ddiff, and nats-server and versitygw if they are missing")
	c, err := Start(ctx, Options{
		Dir: dir, NATS: NATSOptions{Servers: 3, Secure: true, SyncAlways: true},
	})
	defer c.Stop()
	check(err)
	say("started 3 nats-server (%s; 3 replicas, TLS, users, every message synced) and versitygw (%s)", c.NATS.URL(""), c.S3.Address)
	file := try(prepare(ctx, c, dir))
	check(populate(ctx, c))
	id := try(c.Output(ctx, "submit", file))
	id = strings.TrimSpace(id)
	say("submitted %s: 6 photographs, 4 tasks", id)
	return report(ctx, c, id)
}

// prepare uploads the photographs to a bucket and writes the campaign file.
func prepare(ctx context.Context, c *Cluster, dir string) (string, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(root, "examples", "images", "*.png"))
	if err != nil {
		return "", err
	}
	images := map[string][]byte{}
	for _, path := range found {
		if images[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return "", err
		}
	}
	if err := c.PutImages(ctx, images); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "campaign.yaml")
	return file, os.WriteFile(file, fmt.Appendf(nil, campaign, c.Images()), 0o644)
}

// populate starts two coordinators and three workers.
func populate(ctx context.Context, c *Cluster) error {
	for range 2 {
		if _, err := c.AddCoordinator(ctx); err != nil {
			return err
		}
	}
	for range 3 {
		if _, err := c.AddWorker(ctx, "--batch", "1"); err != nil {
			return err
		}
	}
	say("started 2 coordinators and 3 workers")
	return nil
}

// report kills parts of the cluster while the campaign runs, and checks its end.
func report(ctx context.Context, c *Cluster, id string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	broken := make(chan error, 1)
	go func() {
		err := breakAll(ctx, c, id)
		if err != nil {
			cancel(err)
		}
		broken <- err
	}()
	watch := c.Command(ctx, "status", "--watch", id)
	watch.Stderr = os.Stderr
	out, err := watch.Output()
	if err := errors.Join(err, context.Cause(ctx), <-broken); err != nil {
		return fmt.Errorf("watch campaign %s: %w", id, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if !regexp.MustCompile(fmt.Sprintf(`^done=%d failed=0 dead=0 lost=0$`, items)).MatchString(last) {
		return fmt.Errorf("the campaign ended with %q", last)
	}
	if n := c.Settled(id); n != items {
		return fmt.Errorf("%d results in the bucket, want %d", n, items)
	}
	fmt.Println(last)
	return nil
}

// breakAll kills one process of each kind while the campaign runs.
func breakAll(ctx context.Context, c *Cluster, id string) error {
	for _, step := range []struct {
		settled int
		kill    func() error
	}{
		{2, func() error {
			say("%d items are done; killing %s (kill -9)", c.Settled(id), c.Workers[0].Name)
			c.Workers[0].Kill()
			return nil
		}},
		{6, func() error {
			leader, err := c.Leader(ctx)
			if err != nil {
				return err
			}
			say("%d items are done; killing %s, which leads (kill -9)", c.Settled(id), leader.Name)
			leader.Kill()
			return nil
		}},
		{12, func() error {
			i, err := c.NATS.StreamLeader(ctx, StreamWork)
			if err != nil {
				return err
			}
			say("%d items are done; killing %s, which leads the work stream (kill -9)", c.Settled(id), c.NATS.Servers[i].Name)
			c.NATS.Servers[i].Kill()
			return nil
		}},
	} {
		if err := await(ctx, c, id, step.settled); err != nil {
			return err
		}
		if err := step.kill(); err != nil {
			return err
		}
	}
	return nil
}

// await waits for a number of results.
func await(ctx context.Context, c *Cluster, id string, settled int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for c.Settled(id) < settled {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

var began = time.Now()

// say prints a line of progress.
func say(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
