package coordinator

import (
	"context"
	"fmt"
	"strings"

	"ddiff/coordinator/budget"
	"ddiff/manifest"
)

// ownerTicks is the interval between two counts of what owners have used, in ticks.
const ownerTicks = 10

// limitReached begins the reason of a pause that users have asked for by a limit. Other reasons wait for an operator.
const limitReached = "limit reached: "

// used returns what the campaign has used.
func (r *runner) used() budget.Used {
	seconds := r.ledger.Seconds()
	return budget.Used{Items: r.ledger.Items(), Seconds: seconds, Cost: seconds * r.s.cfg.Price}
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
	ownOver, ownNear := budget.Compare(c.Spec.Budget, r.used())
	if ownOver != "" {
		return fmt.Sprintf("%s%s of the budget; to continue: ddiff resume %s --budget LIMITS", limitReached, ownOver, r.id), ""
	}
	allOver, allNear := budget.Compare(r.s.cfg.Quotas.Of(c.Owner), r.s.owners.Others(c.Owner, r.id).Add(r.used()))
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
