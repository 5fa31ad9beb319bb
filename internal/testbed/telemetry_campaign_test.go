package testbed

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
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

// watchCampaign runs a campaign and checks everything that arrived.
func (w *watched) watchCampaign(ctx context.Context) (err error) {
	defer caught(&err)
	begin := time.Now()
	id := try(w.submit(ctx, "watched"))
	counts := try(w.wait(ctx, id, w.plan.items()))
	w.items = counts.Done
	output := w.c.Results(id)
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
	w.checkCounts(ctx, float64(counts.Done))
	w.checkDashboards(ctx, id, begin)
	return nil
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
func (w *watched) checkCounts(ctx context.Context, done float64) {
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
}
