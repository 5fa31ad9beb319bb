package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ddiff/api"
)

// DefaultCampaigns is the default of Config.Campaigns. A leader needs some 230 KiB for a campaign that waits.
const DefaultCampaigns = 1000

const (
	// sharesAge is how long the numbers of campaigns by owner are used again: to read them for each submission would make the cost of many
	// submissions quadratic. fullAge is that time for an owner at the limit, who may have deleted some.
	sharesAge = 10 * time.Second
	fullAge   = time.Second
)

// shares has the number of campaigns that each owner has on the board, with those submitted here since it was read. Other coordinators may have
// accepted some in that time.
type shares struct {
	mu   sync.Mutex
	read time.Time
	of   map[string]int
}

// claim counts a campaign that an owner is about to submit. It returns api.ErrRefused if the owner has as many as the limit. Commands with access
// to NATS state no owner.
func (c *Cluster) claim(ctx context.Context, owner string) error {
	if owner == "" {
		return nil
	}
	s := &c.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := time.Since(s.read); age > sharesAge || age > fullAge && s.of[owner] >= c.cfg.Campaigns {
		all, _, err := c.campaigns(ctx)
		if err != nil {
			return err
		}
		s.read, s.of = time.Now(), map[string]int{}
		for _, other := range all {
			s.of[other.Campaign.Owner]++
		}
	}
	if s.of[owner] >= c.cfg.Campaigns {
		return api.NewError(api.ErrRefused, fmt.Sprintf("%s has %d campaigns on the board, the most for an owner; delete some that have ended, or wait until they "+
			"are archived; an operator can raise the limit with ddiff coordinator --max-campaigns", owner, s.of[owner]))
	}
	s.of[owner]++
	return nil
}
