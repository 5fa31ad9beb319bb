package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/report"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/storage"
)

// writeReport writes the report beside the results. A campaign with too many items gets none:
// its results lie in storage all the same.
func (r *runner) writeReport(ctx context.Context) error {
	if n := r.ledger.items; n == 0 || n > r.s.cfg.ReportItems {
		if n > 0 {
			r.log.Warn("no report is written for a campaign of this size", "items", n, "limit", r.s.cfg.ReportItems)
		}
		return nil
	}
	results, err := r.collect(ctx)
	if err != nil {
		return err
	}
	s := r.rec.Spec
	rule, err := report.ParseRule(string(s.Select))
	if err != nil {
		return err
	}
	_, err = report.Write(ctx, r.results, report.Campaign{
		Name: s.Name, Preset: s.Preset, Prior: r.rec.Prior.Name, PriorLicence: r.rec.Prior.License,
		Steps: s.Steps, Sigma: s.Sigma, Seed: s.Seed, Select: rule,
		Started: r.rec.Submitted, Finished: r.s.cfg.Now(),
	}, func(yield func(manifest.Result, error) bool) {
		for _, res := range results {
			if !yield(res, nil) {
				return
			}
		}
	})
	if errors.Is(err, report.ErrIncomplete) {
		r.log.Warn("the report lacks a part", "reason", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// collect gives a result for each item that has a final state: from storage for what is done,
// from the ledger for the rest.
func (r *runner) collect(ctx context.Context) ([]manifest.Result, error) {
	var results []manifest.Result
	err := r.each(ctx, func(w *shard.Window) error {
		part := make([]*manifest.Result, len(w.Items))
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(16)
		for i, it := range w.Items {
			switch s := r.ledger.state(it.ID); s {
			case done:
				group.Go(func() error {
					var err error
					part[i], err = r.result(inner, it)
					return err
				})
			case failed, dead:
				outcome := manifest.OutcomeFailed
				if s == dead {
					outcome = manifest.OutcomeDead
				}
				part[i] = &manifest.Result{Schema: manifest.SchemaVersion, Item: it, Outcome: outcome, Reason: r.ledger.reason(it.ID)}
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for _, res := range part {
			if res != nil {
				results = append(results, *res)
			}
		}
		results = append(results, w.Failed...)
		return nil
	})
	return results, err
}

// result reads the result of an item that is done. One that has gone is left out.
func (r *runner) result(ctx context.Context, it manifest.Item) (*manifest.Result, error) {
	key := manifest.ItemKey(it.ID, manifest.FileResult)
	data, err := r.results.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		r.log.Error("a result is gone", "key", key, "item", it.Name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	var res manifest.Result
	if err := json.Unmarshal(data, &res); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	res.Item = it // the same work may have been asked for under another name
	return &res, nil
}
