package coordinator

import (
	"cmp"
	"context"

	"ddiff/manifest"
)

// choosePrecision makes the choice for a campaign with the precision auto, once, before its first item: what most live
// workers suggest, or float32 if a method of the campaign differentiates the network or evaluates it in a loop. The choice is
// on record before the sharder starts, so that all items have one precision, whoever restores them and however the workers change.
func (r *runner) choosePrecision(ctx context.Context) error {
	if _, ok := r.rec.Needs(); ok || r.rec.Phase.Ended() || r.rec.Wanted != manifest.WantRun {
		return nil
	}
	if name, reason := r.s.cfg.Catalogue.Methods.Undivided(r.rec.Spec.Methods); name != "" {
		r.log.Info("the precision is float32 because of a method", "method", name, "reason", reason)
		return r.recordPrecision(ctx, manifest.PrecisionFloat32)
	}
	if p := r.s.workers.Suggestion(r.rec.Spec.Pool); p != "" {
		return r.recordPrecision(ctx, p)
	}
	return nil
}

// recordPrecision writes a choice. An earlier choice of another leader stays.
func (r *runner) recordPrecision(ctx context.Context, p manifest.Precision) error {
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Precision = cmp.Or(c.Precision, p) }); err != nil {
		return err
	}
	r.log.Info("chose the precision", "precision", r.rec.Precision)
	return r.openSharder(ctx)
}

// awaitedPrecision is the reason why a campaign with the precision auto has no items yet, or "".
func (r *runner) awaitedPrecision() string {
	if _, ok := r.rec.Needs(); ok {
		return ""
	}
	return "waiting for a worker, whose device decides about the precision auto"
}
