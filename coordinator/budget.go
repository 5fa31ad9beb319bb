package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"ddiff/internal/record"
	"ddiff/manifest"
)

// limitReached begins the reason of a pause that users have asked for by a limit. Other reasons wait for an operator.
const limitReached = "limit reached: "

// used returns what the campaign has used.
func (r *runner) used() usage {
	u := usage{Items: r.outcomes.ledger.Items(), Uses: r.outcomes.ledger.Uses()}
	u.Free = r.s.cfg.Prices.charge(u.Uses)
	for _, part := range u.Uses {
		u.Seconds, u.Cost = u.Seconds+part.Seconds, u.Cost+part.Cost
	}
	return u
}

// compareBudgets returns the reason to pause the campaign, and a warning before it; each is empty without one.
func (r *runner) compareBudgets() (over, near string) {
	c := r.rec
	used := r.used()
	if free := used.Free; c.Spec.Budget.Cost > 0 && (free != "" || len(r.s.cfg.Prices) == 0) {
		return fmt.Sprintf("budget.cost: the coordinator has no price of a device-second of the pool %s; start it with --price, or: ddiff change %s --budget cost=0",
			cmp.Or(free, c.Spec.Pool, manifest.DefaultPool), r.id), ""
	}
	over, near = compareLimits(c.Spec.Budget, used)
	if over != "" {
		return fmt.Sprintf("%s%s of the budget; to continue: ddiff change %s --budget LIMITS, then ddiff resume %s", limitReached, over, r.id, r.id), ""
	}
	if near != "" {
		near = "the budget is nearly used: " + near
	}
	return "", near
}

// pauseOverBudget pauses a campaign with open items whose budget is used or cannot be compared.
func (r *runner) pauseOverBudget(ctx context.Context) error {
	if r.rec.Wanted != record.WantRun || r.windows.complete && r.outcomes.ledger.Open() == 0 {
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
	return r.save(ctx, func(c *record.Campaign) {
		if c.Wanted == record.WantRun {
			c.Wanted, c.Reason = record.WantPause, brief(reason)
		}
	})
}

// usage is what a campaign has used.
type usage struct {
	Items         int
	Seconds, Cost float64
	Uses          []record.Use // of which Seconds and Cost are the sums
	Free          string       // a pool without a price that has worked
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
	note := func(used, limit float64, reached bool, text func() string) { // each campaign compares them each second
		switch {
		case limit == 0:
		case reached:
			hard = append(hard, text())
		case used >= soft*limit:
			warn = append(warn, text())
		}
	}
	note(float64(u.Items), float64(b.Items), u.Items > b.Items, func() string { return fmt.Sprintf("%d of %d items", u.Items, b.Items) })
	note(u.Seconds, b.Seconds, u.Seconds >= b.Seconds, func() string { return amount(u.Seconds) + " of " + amount(b.Seconds) + " device-seconds" })
	note(u.Cost, b.Cost, u.Cost >= b.Cost, func() string { return "a cost of " + amount(u.Cost) + " of " + amount(b.Cost) })
	return strings.Join(hard, " and "), strings.Join(warn, " and ")
}

// usedShare returns the larger used share of the limits of device-seconds and cost, or 1 with too many items; 0 without a limit. As many items as the
// limit are no reason for a warning.
func usedShare(b manifest.Budget, u usage) (share float64) {
	if b.Items > 0 && u.Items > b.Items {
		share = 1
	}
	if b.Seconds > 0 {
		share = max(share, u.Seconds/b.Seconds)
	}
	if b.Cost > 0 {
		share = max(share, u.Cost/b.Cost)
	}
	return share
}

// amount formats a number with three digits or more.
func amount(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
