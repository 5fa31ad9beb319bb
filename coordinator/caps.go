package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/storage"
)

// Caps are the largest costs that the campaigns of an owner may have in a month of UTC, by owner. That of the owner "*" is the cap of each
// owner without one. Campaigns without an owner have none.
type Caps map[string]float64

// Validate returns an error that names a wrong cap.
func (c Caps) Validate(p Prices) error {
	for _, owner := range slices.Sorted(maps.Keys(c)) {
		if owner == "" {
			return errors.New("a cap has no owner")
		}
		if err := checkAmount(owner, c[owner]); err != nil {
			return err
		}
	}
	if len(c) > 0 && len(p) == 0 {
		return errors.New("a cap of cost needs prices")
	}
	return nil
}

// of returns the cap of an owner, and whether it has one.
func (c Caps) of(owner string) (limit float64, ok bool) {
	if limit, ok = c[owner]; !ok {
		limit, ok = c["*"]
	}
	return limit, ok && owner != ""
}

// accounts knows what the campaigns of each owner cost this month: those on the board, and those that have ended and were deleted since.
type accounts struct {
	mu    sync.Mutex
	month string                        // whose costs were loaded; empty: none
	costs map[string]map[string]float64 // by owner and accountOf
}

// account is what a campaign has used in a month. The store has one for each that has ended with an owner.
type account struct {
	Owner string       `json:"owner"`
	Name  string       `json:"name"` // see accountOf
	Uses  []record.Use `json:"uses"`
}

// accountFolder has the accounts, in folders of months. Neither a deletion nor ddiff gc removes them.
const accountFolder = "coordinators/uses/"

// accountOf names the account of a submission: a campaign that was deleted and submitted again has another one.
func accountOf(c *record.Campaign) string {
	return fmt.Sprintf("%s.%d", c.ID, c.Submitted.UnixNano())
}

// reset forgets all, at the begin of a term.
func (a *accounts) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.month = ""
}

// add notes what a campaign has used, and returns the present month and the cost of all campaigns of its owner in it.
func (a *accounts) add(ctx context.Context, cfg *Config, c *record.Campaign, uses []record.Use) (month string, sum float64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if month = record.MonthOf(cfg.Now()); a.month != month {
		if err := a.load(ctx, cfg, month); err != nil {
			return "", 0, fmt.Errorf("read what owners have used: %w", err)
		}
	}
	a.set(month, c.Owner, accountOf(c), cfg.Prices, uses)
	for _, cost := range a.costs[c.Owner] {
		sum += cost
	}
	return month, sum, nil
}

// load reads the accounts of the store and of the campaigns of the board, once in a term and a month: they count before their runners have read
// their ledgers. A clock that was ahead makes an earlier month the present one. The caller holds a.mu.
func (a *accounts) load(ctx context.Context, cfg *Config, month string) error {
	a.month, a.costs = "", map[string]map[string]float64{}
	all, _, err := board.Campaigns(ctx, cfg.Board)
	if err != nil {
		return err
	}
	for _, c := range all {
		a.set(month, c.Campaign.Owner, accountOf(c.Campaign), cfg.Prices, c.Status.Uses)
	}
	prefix := accountFolder + month + "/"
	for stored, err := range storage.Each(ctx, cfg.Store, prefix, func(ctx context.Context, info storage.Info) (stored account, err error) {
		data, err := cfg.Store.Get(ctx, info.Key)
		if err == nil && json.Unmarshal(data, &stored) != nil {
			err = storage.ErrCorrupt
		}
		if errors.Is(err, storage.ErrCorrupt) {
			cfg.Logger.Error("skipped what a campaign has used: the object is damaged", "key", info.Key)
			stored, err = account{}, nil
		}
		return stored, err
	}) {
		if err != nil {
			return err
		}
		a.set(month, stored.Owner, stored.Name, cfg.Prices, stored.Uses)
	}
	a.month = month
	return nil
}

// set notes what a campaign has used in a month. The caller holds a.mu.
func (a *accounts) set(month, owner, name string, p Prices, uses []record.Use) {
	cost := 0.0
	for _, u := range uses {
		if price, _ := p.of(u.Pool); u.Month == month {
			cost += u.Seconds * price
		}
	}
	if a.costs[owner] == nil {
		a.costs[owner] = map[string]float64{}
	}
	a.costs[owner][name] = max(cost, a.costs[owner][name])
}

// compareCap sets the reason why the campaign has to wait, and a warning before it; each is empty without one. A campaign without open items
// need not wait. The reason keeps its sum while items in flight finish.
func (r *runner) compareCap(ctx context.Context) error {
	r.hold, r.holdNear, r.capShare = "", "", 0
	limit, capped := r.s.cfg.Caps.of(r.rec.Owner)
	if !capped || r.rec.Phase.Ended() {
		return nil
	}
	month, sum, err := r.s.accounts.add(ctx, &r.s.cfg, r.rec, r.outcomes.ledger.Uses())
	if err != nil {
		return err
	}
	if r.capShare = 1; limit > 0 {
		r.capShare = sum / limit
	}
	begin, rest := "the campaigns of "+r.rec.Owner+" cost ", fmt.Sprintf(" of %s in %s", amount(limit), month)
	switch {
	case sum >= limit && (!r.windows.complete || r.outcomes.ledger.Open() > 0):
		if r.hold = r.rec.Reason; strings.HasPrefix(r.hold, limitReached+begin) && strings.Contains(r.hold, rest) {
			return nil
		}
		next, _ := time.Parse("2006-01-02", month+"-01")
		r.hold = limitReached + begin + amount(sum) + rest + "; it goes on by itself on " + next.AddDate(0, 1, 0).Format(time.DateOnly) + ", or after a higher coordinator --cap"
	case sum >= softShare*limit:
		r.holdNear = begin + amount(sum) + rest
	}
	return nil
}

// storeUses stores what a campaign that ends has used, for the cap of its owner.
func (r *runner) storeUses(ctx context.Context) error {
	if _, capped := r.s.cfg.Caps.of(r.rec.Owner); !capped {
		return nil
	}
	uses := r.outcomes.ledger.Uses()
	if r.opening { // the ledger has not all of them yet
		uses = r.status.last.Uses
	}
	if _, _, err := r.s.accounts.add(ctx, &r.s.cfg, r.rec, uses); err != nil {
		return err
	}
	byMonth := map[string][]record.Use{}
	for _, u := range uses {
		byMonth[u.Month] = append(byMonth[u.Month], u)
	}
	for month, uses := range byMonth {
		data, err := json.Marshal(account{r.rec.Owner, accountOf(r.rec), uses})
		if err == nil {
			err = r.s.cfg.Store.Put(ctx, accountFolder+month+"/"+accountOf(r.rec)+".json", data)
		}
		if err != nil {
			return fmt.Errorf("store what the campaign has used: %w", err)
		}
	}
	return nil
}
