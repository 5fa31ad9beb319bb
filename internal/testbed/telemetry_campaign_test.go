package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"gonum.org/v1/gonum/stat"

	"ddiff/manifest"
)

// runPromtool checks the rules and runs their unit tests.
func runPromtool(ctx context.Context, promtool string) error {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.CommandContext(ctx, promtool, args...)
		cmd.Dir = filepath.Join(root, "deploy", "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("promtool %v: %w\n%s", args, err, out)
		}
	}
	say("promtool: the rules are valid and their tests pass")
	return nil
}

// outcomes records the times at which outcomes reach the result stream.
type outcomes struct {
	mu    sync.Mutex
	times []time.Time
}

// follow records the outcomes of all campaigns until stop is called.
func (c *Cluster) follow(ctx context.Context) (o *outcomes, stop func(), err error) {
	nc, err := c.NATS.connect(ctx, RoleCommand)
	if err != nil {
		return nil, nil, err
	}
	o = &outcomes{}
	_, err = nc.Subscribe("ddiff.result.>", func(m *nats.Msg) {
		var event manifest.Event
		if json.Unmarshal(m.Data, &event) != nil || event.Outcome == "" {
			return // the answer to a preflight
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.times = append(o.times, time.Now())
	})
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return o, nc.Close, nil
}

func (o *outcomes) all() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.times)
}

// watchCampaign runs a campaign and checks everything that arrived. It returns the campaign's output.
func (w *watched) watchCampaign(ctx context.Context) (output string, err error) {
	defer caught(&err)
	followed, stop, err := w.c.follow(ctx)
	check(err)
	defer stop()
	begin := time.Now()
	id := try(w.submit(ctx, "watched"))
	counts := try(w.wait(ctx, id, w.plan.items(), 0))
	w.items = counts.Done
	output = w.c.Results(id)
	results := try(Results(output))
	workers := map[string]int{}
	for _, r := range results {
		workers[r.Worker]++
	}
	say("items by worker: %v", workers)
	if len(workers) != 3 {
		w.fail("campaign", fmt.Errorf("%d workers restored items, want 3", len(workers)))
	}
	if err := w.checkSpans(ctx, id, output); err != nil {
		w.fail("spans", err)
	}
	if err := w.checkCounts(ctx, float64(counts.Done)); err != nil {
		w.fail("counts", err)
	}
	if err := w.checkThroughput(ctx, followed.all(), begin); err != nil {
		w.fail("throughput", err)
	}
	w.checkDashboards(ctx, id, begin)
	return output, nil
}

// checkSpans waits for the last span and checks all.
func (w *watched) checkSpans(ctx context.Context, id, output string) error {
	results, err := Results(output)
	if err != nil {
		return err
	}
	var arrived traces
	// The root span of the campaign is the last one.
	err = poll(ctx, 20*time.Second, "the spans of the campaign", func() (bool, error) {
		spans, err := w.collector.received()
		arrived = newTraces(spans)
		return len(arrived.orphans()) == 0 && len(arrived.brokenLinks()) == 0 && len(arrived.roots(id)) >= len(results), err
	})
	if err != nil {
		w.fail("spans", err)
	}
	orphans, links := arrived.orphans(), arrived.brokenLinks()
	w.spans, w.orphans = arrived.count(), len(orphans)
	say("spans: %d in %d traces, %d of them roots of attempts at items; %d orphans, %d links without a target",
		w.spans, len(arrived), len(arrived.roots(id)), len(orphans), len(links))
	if len(orphans) > 0 {
		w.fail("spans", fmt.Errorf("%d spans are orphans: %s", len(orphans), describeSpans(orphans)))
	}
	if len(links) > 0 {
		w.fail("spans", fmt.Errorf("%d spans have links without a target: %s", len(links), describeSpans(links)))
	}
	w.fail("spans", arrived.checkAttempts(id, results)...)
	for _, spans := range arrived {
		for _, s := range spans {
			if s.Attributes["messaging.system"] != "" {
				w.fail("spans", checkMessaging(s)...)
			}
		}
	}
	return nil
}

// checkCounts compares counters in Prometheus with the ledger's counts.
func (w *watched) checkCounts(ctx context.Context, done float64) error {
	for query, want := range map[string]float64{
		`sum(ddiff_items_total{outcome="done"})`:        done,
		`sum(ddiff_items_total)`:                        done,
		`sum(ddiff_ledger_items_total{outcome="done"})`: done,
		`sum(ddiff_queue_published_total)`:              done + 1, // the preflight
		`sum(ddiff_item_duration_seconds_count)`:        done,
		`sum(ddiff_queue_lag)`:                          0,
	} {
		var got float64
		err := poll(ctx, 15*time.Second, query, func() (ok bool, err error) {
			got, err = w.prometheus.number(ctx, query)
			return got == want, err
		})
		say("%s = %v", query, got)
		if err != nil {
			w.fail("counts", fmt.Errorf("%s is %v, want %v", query, got, want))
		}
	}
	return nil
}

// checkThroughput compares the throughput between a tenth and nine tenths of the items, in the result stream and in Prometheus.
func (w *watched) checkThroughput(ctx context.Context, times []time.Time, begin time.Time) error {
	first, last := len(times)/10, len(times)*9/10
	if last-first < 10 {
		return fmt.Errorf("%d outcomes are too few to measure the throughput", len(times))
	}
	slices.SortFunc(times, time.Time.Compare)
	var all []sample
	query := fmt.Sprintf("ddiff_items_total[%ds]", int(time.Since(begin).Seconds())+5)
	if err := w.prometheus.ask(ctx, "query", url.Values{"query": {query}}, &all); err != nil {
		return err
	}
	var scraped []time.Time
	for n := first; n < last; n++ {
		at, err := crossing(all, float64(n+1))
		if err != nil {
			return err
		}
		scraped = append(scraped, at)
	}
	inLedger, inPrometheus := throughput(times[first:last]), throughput(scraped)
	w.deviation = math.Abs(inPrometheus/inLedger - 1)
	say("throughput of items %d to %d: %.3f items/s in the result stream, %.3f in Prometheus", first, last, inLedger, inPrometheus)
	if !(w.deviation <= throughputError) {
		return fmt.Errorf("the throughputs differ by %.4f, at most %v is allowed", w.deviation, throughputError)
	}
	return nil
}

// throughput returns the slope of the line through the numbers of the items over their times, in items per second.
func throughput(times []time.Time) float64 {
	var seconds, numbers []float64
	for i, at := range times {
		seconds, numbers = append(seconds, at.Sub(times[0]).Seconds()), append(numbers, float64(i))
	}
	_, slope := stat.LinearRegression(seconds, numbers, nil, false)
	return slope
}

// crossing returns the time at which the sum of counters reaches a count.
func crossing(all []sample, count float64) (time.Time, error) {
	type change struct {
		at time.Time
		by float64
	}
	var changes []change
	for _, s := range all {
		last := 0.0
		for _, v := range s.Values {
			if v.value != last {
				changes = append(changes, change{v.at, v.value - last})
				last = v.value
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	sum := 0.0
	for _, c := range changes {
		if sum += c.by; sum >= count {
			return c.at, nil
		}
	}
	return time.Time{}, fmt.Errorf("the counters reach %v, want %v", sum, count)
}
