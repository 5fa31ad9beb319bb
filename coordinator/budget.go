package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// ownerTicks is the interval between two counts of what owners have used, in ticks.
const ownerTicks = 10

// limitReached begins the reason of a pause that users have asked for by a limit. Other reasons wait for an operator.
const limitReached = "limit reached: "

// used returns what the campaign has used.
func (r *runner) used() usage {
	seconds := r.ledger.Seconds()
	return usage{Items: r.ledger.Items(), Seconds: seconds, Cost: seconds * r.s.cfg.Price}
}

// compareBudgets returns the reason to pause the campaign, and a warning before it; each is empty without one. A Run has no budget.
func (r *runner) compareBudgets() (over, near string) {
	if r.s.cfg.run != nil {
		return "", ""
	}
	c := r.rec
	if c.Spec.Budget.Cost > 0 && r.s.cfg.Price == 0 {
		return fmt.Sprintf("budget.cost: the coordinator has no price of a device-second; start it with --price, or: ddiff resume %s --budget cost=0", r.id), ""
	}
	ownOver, ownNear := compareLimits(c.Spec.Budget, r.used())
	if ownOver != "" {
		return fmt.Sprintf("%s%s of the budget; to continue: ddiff resume %s --budget LIMITS", limitReached, ownOver, r.id), ""
	}
	allOver, allNear := compareLimits(r.s.cfg.Quotas.Of(c.Owner), r.s.owners.others(c.Owner, r.id).add(r.used()))
	if allOver != "" {
		return fmt.Sprintf("%s%s of all campaigns of %s; an administrator can raise the quota or delete campaigns, then resume", limitReached, allOver, c.Owner), ""
	}
	var warnings []string
	if ownNear != "" {
		warnings = append(warnings, "the budget is nearly used: "+ownNear)
	}
	if allNear != "" {
		warnings = append(warnings, fmt.Sprintf("the quota of %s is nearly used: %s by all campaigns", c.Owner, allNear))
	}
	return "", strings.Join(warnings, "; ")
}

// pauseOverBudget pauses a campaign with open items whose budget, or the quota of whose owner, is used or cannot be compared.
func (r *runner) pauseOverBudget(ctx context.Context) error {
	if r.rec.Wanted != manifest.WantRun || r.windows.complete && r.ledger.Open() == 0 {
		return nil
	}
	over, _ := r.compareBudgets()
	if over == "" {
		return nil
	}
	return r.pauseBecause(ctx, over)
}

// pauseBecause pauses the campaign with a reason, unless users have requested another state.
func (r *runner) pauseBecause(ctx context.Context, reason string) error {
	return r.save(ctx, func(c *manifest.Campaign) {
		if c.Wanted == manifest.WantRun {
			c.Wanted, c.Reason = manifest.WantPause, reason
		}
	})
}

// usage is what a campaign, or all campaigns of an owner, have used.
type usage struct {
	Items         int
	Seconds, Cost float64
}

// add returns the sum.
func (u usage) add(v usage) usage {
	return usage{u.Items + v.Items, u.Seconds + v.Seconds, u.Cost + v.Cost}
}

// softShare is the default of [manifest.Budget.Soft].
const softShare = 0.8

// compareLimits returns one text on the limits that are used up, and one on those that are nearly so; each is empty without one. Items may be
// as many as their limit, device-seconds and cost must stay below it.
func compareLimits(b manifest.Budget, u usage) (over, near string) {
	soft := b.Soft
	if soft == 0 {
		soft = softShare
	}
	var hard, warn []string
	note := func(used, limit float64, reached bool, text string) {
		switch {
		case limit == 0:
		case reached:
			hard = append(hard, text)
		case used >= soft*limit:
			warn = append(warn, text)
		}
	}
	note(float64(u.Items), float64(b.Items), u.Items > b.Items, fmt.Sprintf("%d of %d items", u.Items, b.Items))
	note(u.Seconds, b.Seconds, u.Seconds >= b.Seconds, amount(u.Seconds)+" of "+amount(b.Seconds)+" device-seconds")
	note(u.Cost, b.Cost, u.Cost >= b.Cost, "a cost of "+amount(u.Cost)+" of "+amount(b.Cost))
	return strings.Join(hard, " and "), strings.Join(warn, " and ")
}

// amount formats a number with three digits or more.
func amount(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Quotas maps owners to what all their campaigns together may use. The key "*" has the quota of owners without one of their own.
type Quotas map[string]manifest.Budget

// Of returns the quota of an owner. Campaigns without an owner have none.
func (q Quotas) Of(owner string) manifest.Budget {
	b, own := q[owner]
	switch {
	case owner == "":
		return manifest.Budget{}
	case !own:
		return q["*"]
	}
	return b
}

// owners knows what the campaigns of each owner have used: those on the board, and those in the archive. Deleted campaigns do not count.
type owners struct {
	last atomic.Pointer[counted] // nil before the first count
}

// counted is a count.
type counted struct {
	owners    map[string]usage // by index.OwnerDigest
	campaigns map[string]usage // by id
}

// others returns what the campaigns of an owner except one have used by the last count.
func (o *owners) others(owner, except string) usage {
	last := o.last.Load()
	if last == nil {
		return usage{}
	}
	own := last.campaigns[except]
	return last.owners[index.OwnerDigest(owner)].add(usage{-own.Items, -own.Seconds, -own.Cost})
}

// watch counts at every interval until ctx ends. It logs errors, and counts the records that it can read.
func (o *owners) watch(ctx context.Context, b *queue.Board, s storage.Store, interval time.Duration, logger *slog.Logger) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := o.count(ctx, b, s); err != nil && ctx.Err() == nil {
			logger.Warn("could not count all that owners have used", "reason", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (o *owners) count(ctx context.Context, b *queue.Board, s storage.Store) error {
	all, skipped, err := board.Campaigns(ctx, b)
	if err != nil {
		return err
	}
	archived, err := index.New(s).All(ctx)
	if err != nil {
		return err
	}
	n := &counted{owners: map[string]usage{}, campaigns: map[string]usage{}}
	add := func(owner, id string, u usage) {
		n.owners[owner], n.campaigns[id] = n.owners[owner].add(u), u
	}
	for _, c := range all {
		delete(archived, c.Campaign.ID)
		add(index.OwnerDigest(c.Campaign.Owner), c.Campaign.ID, usage{c.Status.Counts.Items, c.Status.Seconds, c.Status.Cost})
	}
	for id, e := range archived {
		if e.State == index.Archived {
			add(e.Row.Owner, id, usage{e.Row.Counts.Items, e.Row.Seconds, e.Row.Cost})
		}
	}
	o.last.Store(n)
	return errors.Join(skipped...)
}
