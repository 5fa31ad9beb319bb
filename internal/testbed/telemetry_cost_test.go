package testbed

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/report/statistic"
)

// costImages is the number of images of a campaign that measures the cost.
const costImages = 6

// measured is a campaign on one worker: time from the first outcome to the last, and processor time of the worker per item.
type measured struct{ elapsed, processor float64 }

// measureCost runs campaigns in turn on two clusters of one coordinator and one worker: one exports to the collector and is read by
// Prometheus, the other has no telemetry. It prints the ratios of their times with intervals.
func (w *watched) measureCost(ctx context.Context, _ string) (err error) {
	defer caught(&err)
	if w.o.pairs == 0 {
		return nil
	}
	w.c.Stop() // the addresses of its metrics are free, and Prometheus reads them
	var clusters [2]*Cluster
	defer func() {
		for _, c := range clusters {
			if c != nil {
				c.Stop()
			}
		}
	}()
	for i := range clusters {
		clusters[i], err = w.startCost(ctx, i == 0)
		check(err)
	}
	ratios := map[string][]float64{}
	for pair := -1; pair < w.o.pairs; pair++ { // the first pair compiles the models
		var of [2]measured
		for turn := range 2 {
			i := (pair + turn) & 1 // each goes first in turn
			of[i] = try(w.measure(ctx, clusters[i], fmt.Sprintf("cost%d", pair+1)))
		}
		if pair >= 0 {
			ratios["processor time"] = append(ratios["processor time"], of[0].processor/of[1].processor)
			ratios["elapsed time"] = append(ratios["elapsed time"], of[0].elapsed/of[1].elapsed)
		}
	}
	for _, name := range []string{"processor time", "elapsed time"} {
		mean, low, high := ratioInterval(ratios[name])
		say("cost of telemetry, %d pairs of campaigns: %s with / without = %.4f, 95 %% interval %.4f to %.4f", w.o.pairs, name, mean, low, high)
	}
	return nil
}

// startCost starts a cluster of one coordinator and one worker, with or without telemetry. The caller must stop it, also after an error.
func (w *watched) startCost(ctx context.Context, observed bool) (*Cluster, error) {
	c, err := Start(ctx, Options{Dir: filepath.Join(w.o.keep, fmt.Sprintf("cost-%v", observed)), Program: w.o.program, Directory: true})
	if err != nil {
		return c, err
	}
	coordinator, worker := c.NewCoordinator(), c.NewWorker("--batch", "2")
	for _, p := range []*Process{coordinator, worker} { // a worker needs a coordinator
		if observed {
			p.args = append(p.args, "--metrics-listen", w.addresses[p.Name])
			p.env = append(p.env, w.collector.environment()...)
		}
		if err := p.Start(); err != nil {
			return c, err
		}
		kind, _, _ := strings.Cut(p.Name, "-")
		if err := p.WaitLog(ctx, kind+" is ready"); err != nil {
			return c, err
		}
	}
	return c, nil
}

// measure runs one campaign.
func (w *watched) measure(ctx context.Context, c *Cluster, name string) (m measured, err error) {
	defer caught(&err)
	p := w.plan
	p.name, p.images = name, map[string][]byte{}
	for _, image := range slices.Sorted(maps.Keys(w.plan.images))[:min(costImages, len(w.plan.images))] {
		p.images[image] = w.plan.images[image]
	}
	followed, stop, err := c.follow(ctx)
	check(err)
	defer stop()
	worker := c.Workers[0].PID()
	before := try(processorTime(worker))
	id := try(submitPlan(ctx, c, p, filepath.Join(c.o.Dir, name)))
	out, err := c.Output(ctx, "status", "--watch", id)
	if want := fmt.Sprintf("done=%d failed=0 dead=0 lost=0", p.items()); lastLine(out) != want || err != nil {
		return m, fmt.Errorf("campaign %s ended with %q, want %q: %v", id, lastLine(out), want, err) //nolint:errorlint // it may be nil
	}
	after, err := processorTime(worker)
	times := followed.all()
	if err != nil || len(times) < 2 {
		return m, fmt.Errorf("measure campaign %s: %d outcomes, %v", id, len(times), err) //nolint:errorlint // it may be nil
	}
	return measured{times[len(times)-1].Sub(times[0]).Seconds(), (after - before).Seconds() / float64(p.items())}, nil
}

// ratioInterval returns the geometric mean of ratios and its 95 % t interval.
func ratioInterval(ratios []float64) (mean, low, high float64) {
	var logs []float64
	for _, r := range ratios {
		logs = append(logs, math.Log(r))
	}
	e := statistic.Mean(logs)
	if e.HalfWidth == nil {
		return math.Exp(e.Mean), 0, math.Inf(1)
	}
	return math.Exp(e.Mean), math.Exp(e.Mean - *e.HalfWidth), math.Exp(e.Mean + *e.HalfWidth)
}

// TestRatioInterval compares with values computed by hand: logs 0 and 0.02, t(1) = 12.706.
func TestRatioInterval(t *testing.T) {
	t.Parallel()
	mean, low, high := ratioInterval([]float64{1, math.Exp(0.02)})
	half := 12.7062 * 0.0141421 / math.Sqrt2
	for _, c := range [][2]float64{{mean, math.Exp(0.01)}, {low, math.Exp(0.01 - half)}, {high, math.Exp(0.01 + half)}} {
		if math.Abs(c[0]-c[1]) > 1e-4 {
			t.Errorf("ratio %v, want %v", c[0], c[1])
		}
	}
}

// TestCrossing: counters of several processes reach a sum at the time of the sample that completes it.
func TestCrossing(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	all := []sample{
		{Values: []point{{at(1), 1}, {at(4), 2}, {at(7), 5}}},
		{Values: []point{{at(2), 2}, {at(5), 2}, {at(6), 4}}},
	}
	for count, want := range map[float64]int64{1: 1, 2: 2, 3: 2, 4: 4, 6: 6, 7: 7, 9: 7} {
		got, err := crossing(all, count)
		if err != nil || !got.Equal(at(want)) {
			t.Errorf("the sum reaches %v at %v, error %v; want %d", count, got.Unix(), err, want)
		}
	}
	if _, err := crossing(all, 10); err == nil {
		t.Error("the sum reaches 10")
	}
}

// TestThroughput: a line of two items per second.
func TestThroughput(t *testing.T) {
	t.Parallel()
	var times []time.Time
	for i := range 20 {
		times = append(times, time.Unix(0, int64(i)*5e8))
	}
	if got := throughput(times); math.Abs(got-2) > 1e-9 {
		t.Errorf("%v items per second, want 2", got)
	}
}
