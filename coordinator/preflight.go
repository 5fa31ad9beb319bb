package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// A preflight has one item for each task, size and method, at most maxPreflight, and then items of up to moreImages
// other images, so that one damaged image does not fail the check.
const (
	maxPreflight = 32
	moreImages   = 3
)

// trial is the state of the preflight and of the canary items. It is empty until they begin.
type trial struct {
	checked *record.Checked // the answer to the preflight
	canary  []string        // identities of the published canary items
}

// startPreflight asks one worker to check the campaign.
func (r *runner) startPreflight(ctx context.Context) error {
	first, err := r.windows.first(ctx)
	if err != nil {
		return err
	}
	if err := r.publishPreflight(ctx, first.Items); err != nil {
		return err
	}
	return r.enterPhase(ctx, record.PhasePreflight)
}

func (r *runner) publishPreflight(ctx context.Context, items []item.Item) error {
	p := record.Preflight{Schema: item.SchemaVersion, Campaign: r.id}
	seen := map[string]bool{}
	for _, it := range items {
		if class := shard.Class(it) + " " + it.Method; !seen[class] && len(p.Items) < maxPreflight {
			seen[class] = true
			p.Items = append(p.Items, it)
			seen[it.Name] = true
		}
	}
	more := 0
	for _, it := range items {
		if !seen[it.Name] && more < moreImages {
			seen[it.Name] = true
			p.Items = append(p.Items, it)
			more++
		}
	}
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("publish preflight: %w", err)
	}
	return r.queue.send(r.traced(ctx), []queue.Work{{Class: record.ClassPreflight, ID: record.IDPreflight, Payload: data, Round: r.rec.Round}})
}

// notePreflight stores a worker's answer to the preflight. A worker that gave the preflight up answers with an
// outcome, as for any item.
func (r *runner) notePreflight(payload []byte) {
	var answer struct {
		record.Checked
		Outcome item.Outcome `json:"outcome"`
	}
	if err := json.Unmarshal(payload, &answer); err != nil {
		r.log.Error("skipped a preflight answer that cannot be read", "reason", err)
		return
	}
	c := answer.Checked
	if answer.Outcome != "" && answer.Outcome != item.OutcomeDone {
		c.Failed = record.CheckedByNone
	}
	if c.Failed == record.CheckedByNone {
		names, all := r.s.workers.Lost(r.id)
		if len(names) == 0 {
			names = all
		}
		c.Reason = describeLost(c.Reason, names)
	}
	if c.Failed == "" {
		for _, check := range c.Checks {
			r.log.Info("preflight", "check", check.Name, "found", check.Found, "worker", c.Worker)
		}
	}
	r.trial.checked = &c
}

// describeLost adds the workers that a preflight has ended, and the usual cause, to a reason.
func describeLost(reason string, workers []string) string {
	names := ""
	if len(workers) > 0 {
		names = ": " + strings.Join(workers, ", ")
	}
	return fmt.Sprintf("%s%s; a kernel ends a worker that has too little memory, which its log states (Out of memory: Killed process): "+
		"give it more, or another prior, size or batch", reason, names)
}

// lostWorkers describes the workers that have ended while the preflight has no answer; "" without any.
func (r *runner) lostWorkers() string {
	names, _ := r.s.workers.Lost(r.id)
	if r.rec.Phase != record.PhasePreflight || len(names) == 0 {
		return ""
	}
	return describeLost("workers have ended without an answer to the preflight", names)
}

// publishCanary publishes the canary items.
func (r *runner) publishCanary(ctx context.Context) error {
	first, err := r.windows.first(ctx)
	if err != nil {
		return err
	}
	items := canaries(first.Items, r.rec.Canary)
	if _, err := r.publish(ctx, items); err != nil {
		return err
	}
	r.trial.canary = identities(items)
	return nil
}

// identities returns the identities of items.
func identities(items []item.Item) []string {
	var ids []string
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

// canaries selects n items that cover as many tasks as possible.
func canaries(items []item.Item, n int) []item.Item {
	var out []item.Item
	selected := map[string]bool{}
	for before := -1; len(out) > before; {
		before = len(out)
		tasks := map[string]bool{}
		for _, it := range items {
			if selected[it.ID] || tasks[it.Task] || len(out) == n {
				continue
			}
			tasks[it.Task], selected[it.ID] = true, true
			out = append(out, it)
		}
	}
	return slices.Clip(out)
}
