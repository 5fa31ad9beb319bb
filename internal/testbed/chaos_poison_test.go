package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// The clusters with poison: two workers that batch 8 items, a memory limit for each, and one image of 15 sound ones that
// needs more memory than that.
const (
	poisonWorkers = 2
	poisonBatch   = 8
	poisonSound   = 15
	poisonImages  = 1
	poisonSide    = 8000
	poisonMemory  = 600 << 20
	// poisonLimit is the deadline of a campaign with poison.
	poisonLimit = 3 * time.Minute
)

// runPoison runs a campaign with an image that kills the worker that decodes it, with default attempts, and then retries
// the dead item while the leader is killed. Exactly the poison is dead, before and after.
func runPoison(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (f figures, err error) {
	defer caught(&err)
	ctx, cancel := context.WithTimeout(ctx, poisonLimit)
	defer cancel()
	plans := try(drawPlans(ctx, o))
	p := plan{name: "poison", images: map[string][]byte{}, tasks: tasks[3:], steps: 20, prior: plans.sound.prior, canary: 2}
	for name, data := range plans.sharding.images {
		if name < fmt.Sprintf("shard-%04d.png", poisonSound) {
			p.images[name] = data
		}
	}
	for i := range poisonImages {
		p.images[fmt.Sprintf("poison-%d.png", i)] = try(hugeImage(poisonSide, 100+i))
	}
	c, fleet, stop, err := startPoison(ctx, o, dir, say, "--batch", fmt.Sprint(poisonBatch), "--source-cache", "-1")
	defer stop()
	check(err)
	id := try(submitPlan(ctx, c, p, dir))
	if f, err = poisonDead(ctx, c, id, p, say); err != nil {
		return f, err
	}
	leader, _, err := fleet.reserveLeader(ctx, false)
	check(err)
	fleet.damaged = id
	answered := make(chan error, 1)
	go func() { answered <- fleet.do(ctx, "retry", "--dead", id) }()
	sleep(ctx, time.Duration(o.seed%10)*50*time.Millisecond)
	leader.Kill()
	err = leader.Start()
	fleet.give(leader)
	check(errors.Join(err, <-answered))
	say("dead retry, with %s killed", leader.Name)
	f, err = poisonDead(ctx, c, id, p, say)
	say("worker processes restarted: %d", fleet.revivals)
	return f, err
}

// startPoison starts a cluster with one NATS server, results in a directory, two coordinators and workers with limited
// memory, which a supervisor restarts.
func startPoison(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any), args ...string) (*Cluster, *fleet, func(), error) {
	c, err := Start(ctx, Options{Dir: dir, Program: o.program, Directory: true, Lease: lease, Election: term, Stall: stall})
	if err != nil {
		return c, nil, c.Stop, err
	}
	for range 2 {
		if _, err := c.AddCoordinator(ctx); err != nil {
			return c, nil, c.Stop, err
		}
	}
	for range poisonWorkers {
		p := c.NewWorker(append(args, "--log-format", "json")...)
		p.LimitMemory(poisonMemory)
		if err := p.Start(); err != nil {
			return c, nil, c.Stop, err
		}
		if err := p.WaitLog(ctx, "worker is ready"); err != nil {
			return c, nil, c.Stop, err
		}
	}
	f := &fleet{c: c, say: say, lease: lease, term: term, down: map[*Process]bool{}}
	watched, end := context.WithCancel(ctx)
	supervised := make(chan struct{})
	go func() {
		defer close(supervised)
		f.supervise(watched)
	}()
	return c, f, func() {
		end()
		<-supervised
		c.Stop()
	}, nil
}

// submitPlan submits a campaign of local images.
func submitPlan(ctx context.Context, c *Cluster, p plan, dir string) (string, error) {
	images, file := filepath.Join(dir, "images", p.name), filepath.Join(dir, p.name+".yaml")
	if err := errors.Join(p.writeImages(images), p.write(file, images)); err != nil {
		return "", err
	}
	out, err := c.Output(ctx, "submit", file, "--canary", fmt.Sprint(p.canary))
	return strings.TrimSpace(out), err
}

// poisonDead waits for the end of a campaign and counts its dead items.
func poisonDead(ctx context.Context, c *Cluster, id string, p plan, say func(format string, args ...any)) (f figures, err error) {
	out, err := c.Output(ctx, "status", "--watch", id)
	if err != nil && !strings.HasPrefix(lastLine(out), "done=") {
		return f, fmt.Errorf("watch campaign %s: %w", id, err)
	}
	say("%s: %s", id, lastLine(out))
	lists, err := filepath.Glob(filepath.Join(c.Results(id), result.FailuresFolder, id, "*"))
	if err != nil {
		return f, err
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			return f, err
		}
		for line := range bytes.Lines(data) {
			var r item.Result
			if err := json.Unmarshal(line, &r); err != nil {
				return f, err
			}
			if strings.Contains(r.Item.Name, "poison") {
				f.poison++
			} else {
				f.innocent++
			}
			say("%s %s: %s", r.Item.Name, r.Outcome, r.Reason)
		}
	}
	st, err := c.Status(ctx, id)
	if err != nil {
		return f, err
	}
	want, innocents := 0, 0
	for name := range maps.Keys(p.images) {
		if strings.HasPrefix(name, "poison") {
			want += len(p.tasks)
		} else {
			innocents += len(p.tasks)
		}
	}
	n := st.Counts
	if st.Phase != record.PhaseFinished || n.Dead != want || n.Done != innocents || f.poison != want || f.innocent != 0 {
		return f, fmt.Errorf("campaign %s is %s with %+v, %d dead innocents; want %d dead, the poison, and %d done",
			id, st.Phase, n, f.innocent, want, innocents)
	}
	return f, nil
}

// TestChaosPoison runs the cluster with poison.
func TestChaosPoison(t *testing.T) {
	runBeside(t, runPoison)
}

// runBeside runs one of the clusters beside the main one.
func runBeside(t *testing.T, run func(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (figures, error)) {
	t.Helper()
	skipLong(t)
	o := short(chaosOptions{seed: fixedSeed, program: program, out: io.Discard})
	f, err := run(t.Context(), o, filepath.Join(t.TempDir(), "c"), t.Logf)
	must(t, err)
	if f.lost+f.duplicates+f.innocent > 0 {
		t.Errorf("%+v", f)
	}
}
