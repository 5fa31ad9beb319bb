package testbed

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ddiff/internal/record"
)

// telemetryLimit is the deadline of the test, without the first build of Prometheus.
const telemetryLimit = 25 * time.Minute

// telemetryOptions are the flags of telemetry.
type telemetryOptions struct {
	program       string
	images, steps int
	keep          string
}

// telemetryTest is the command behind `make telemetry-test`. It runs a cluster (NATS, a store, one coordinator, three workers) that
// exports to a real OpenTelemetry Collector, and that a real Prometheus reads, and checks what arrived:
//
//   - a campaign: spans, links and attributes of every item, counts, a value for each query of the dashboards;
//   - alerts: no leader, no workers, and a stuck campaign, with the rules sixty times as fast.
//
// The last line is
//
//	items=N spans=N orphans=0
//
// The exit code is 1 if a check fails.
func telemetryTest(ctx context.Context, args []string) (err error) {
	defer caught(&err)
	var o telemetryOptions
	flags := flag.NewFlagSet("telemetry", flag.ExitOnError)
	flags.StringVar(&o.program, "program", "", "ddiff program (default: built from this tree)")
	flags.IntVar(&o.images, "images", 24, "images of the campaign, each with four tasks")
	flags.IntVar(&o.steps, "steps", 20, "solver steps")
	flags.StringVar(&o.keep, "keep", "", "a new directory for configuration, logs and what arrived (default: a temporary one)")
	check(flags.Parse(args))
	say("building ddiff and a collector, and nats-server and Prometheus if they are missing: the first time takes ten minutes")
	server, promtool, err := prometheusBinaries(ctx)
	check(err)
	check(runPromtool(ctx, promtool))
	ctx, cancel := context.WithTimeout(ctx, telemetryLimit)
	defer cancel()
	if o.keep == "" {
		o.keep = try(os.MkdirTemp("", "ddiff-telemetry-"))
		defer os.RemoveAll(o.keep) //nolint:errcheck // a leftover is a temporary file
	} else if err := os.Mkdir(o.keep, 0o755); err != nil {
		return err
	}
	program := try(collectorBinary(ctx, o.keep))
	w := &watched{o: o}
	defer w.stop()
	check(w.start(ctx, program, server))
	return w.run(ctx)
}

// watched is a cluster with a collector and a Prometheus.
type watched struct {
	o                     telemetryOptions
	c                     *Cluster
	collector             *collector
	prometheus            *prometheus
	addresses             map[string]string // of the metrics, by process
	plan                  plan
	problems              []error
	items, spans, orphans int
}

func (w *watched) stop() {
	if w.c != nil {
		w.c.Stop()
	}
	if w.prometheus != nil {
		w.prometheus.Kill()
	}
	if w.collector != nil {
		w.collector.Kill()
	}
}

// fail records the problems of a part; the other parts run all the same.
func (w *watched) fail(part string, problems ...error) {
	for i, err := range problems {
		switch {
		case err == nil:
		case i < 10:
			say("%s: %v", part, err)
			w.problems = append(w.problems, fmt.Errorf("%s: %w", part, err))
		case i == 10:
			say("%s: and %d more", part, len(problems)-i)
		}
	}
}

// start starts the servers, the collector, Prometheus, and a coordinator with three workers.
func (w *watched) start(ctx context.Context, collectorProgram, prometheusProgram string) (err error) {
	defer caught(&err)
	w.c, err = Start(ctx, Options{Dir: filepath.Join(w.o.keep, "cluster"), Program: w.o.program, Directory: true})
	check(err)
	w.o.program = w.c.o.Program
	w.collector, err = startCollector(ctx, collectorProgram, filepath.Join(w.o.keep, "collector"))
	check(err)
	w.addresses = map[string]string{}
	jobs := map[string][]string{}
	for _, name := range []string{"coordinator-1", "worker-1", "worker-2", "worker-3"} {
		w.addresses[name] = try(FreeAddress(ctx))
		job, _, _ := strings.Cut(name, "-")
		jobs["ddiff-"+job] = append(jobs["ddiff-"+job], w.addresses[name])
	}
	w.prometheus, err = startPrometheus(ctx, prometheusProgram, filepath.Join(w.o.keep, "prometheus"), jobs)
	check(err)
	c := w.c.NewCoordinator("--metrics-listen", w.addresses["coordinator-1"], "--price", "1")
	check(w.begin(ctx, c, "coordinator is ready"))
	for i := range 3 {
		p := w.c.NewWorker("--batch", "2", "--log-format", "json", "--nats-wait", "1m", "--metrics-listen", w.addresses[fmt.Sprintf("worker-%d", i+1)])
		check(w.begin(ctx, p, "worker is ready"))
	}
	say("started nats-server, a collector (%s), Prometheus (%s), a coordinator and 3 workers", w.collector.address, w.prometheus.address)
	return w.draw(ctx)
}

// begin starts a process that exports to the collector, with more variables, and waits until its log has a text.
func (w *watched) begin(ctx context.Context, p *Process, ready string, more ...string) error {
	p.env = append(append(p.env, w.collector.environment()...), more...)
	if err := p.Start(); err != nil {
		return err
	}
	return p.WaitLog(ctx, ready)
}

// draw makes the campaign.
func (w *watched) draw(ctx context.Context) (err error) {
	defer caught(&err)
	root := try(ModuleRoot(ctx))
	photographs := try(decodeAll(filepath.Join(root, "examples", "images", "*.png")))
	rng := rand.New(rand.NewPCG(imageSeed, 2))
	w.plan = plan{tasks: tasks, steps: w.o.steps, prior: filepath.Join(root, "internal", "restore", "prior", "bundled", "prior.onnx"), images: map[string][]byte{},
		more: "deadline: 2100-01-01T00:00:00Z\nbudget: {cost: 1e6}\n"} // for the panels of cost and deadline
	for i := range w.o.images {
		w.plan.images[fmt.Sprintf("crop-%04d.png", i)] = try(crop(rng, photographs))
	}
	return nil
}

// submit submits the campaign under a name of its own, so that it restores every item again.
func (w *watched) submit(ctx context.Context, name string) (string, error) {
	p := w.plan
	p.name = name
	return submitPlan(ctx, w.c, p, filepath.Join(w.o.keep, name))
}

// wait waits for the end of a campaign and compares its counts.
func (w *watched) wait(ctx context.Context, id string, done int) (record.Counts, error) {
	out, err := w.c.Output(ctx, "status", "--watch", id)
	last := lastLine(out)
	say("%s: %s", id, last)
	if want := fmt.Sprintf("done=%d failed=0 dead=0 lost=0", done); last != want {
		return record.Counts{}, fmt.Errorf("campaign %s ended with %q, want %q: %w", id, last, want, cmp.Or(err, errors.New("no error")))
	}
	st, err := w.c.Status(ctx, id)
	return st.Counts, err
}

// run runs the parts and prints the last line.
func (w *watched) run(ctx context.Context) error {
	for _, part := range []struct {
		name string
		run  func(ctx context.Context) error
	}{
		{"campaign", w.watchCampaign}, {"alerts", w.fireAlerts},
	} {
		if err := part.run(ctx); err != nil {
			w.fail(part.name, err)
		}
	}
	fmt.Printf("items=%d spans=%d orphans=%d\n", w.items, w.spans, w.orphans)
	return errors.Join(w.problems...)
}
