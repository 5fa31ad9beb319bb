package fleet

import (
	"time"

	"ddiff/internal/record"
)

// Suspend skips a campaign for a while, because this worker cannot read its files.
func (f *Fleet) Suspend(id string, d time.Duration, reason error) {
	f.change(id, func(c *campaign) { f.skip(c, d, reason) })
}

// LeaseOne sets whether single items of a campaign are leased, because its queue holds items that run alone.
func (f *Fleet) LeaseOne(id string, one bool) {
	f.change(id, func(c *campaign) { c.leaseOne = one })
}

// LeaseFirst leases items of a campaign before those of the others of its priority, once, and its preflight before those of all.
func (f *Fleet) LeaseFirst(id string) {
	f.change(id, func(c *campaign) {
		c.first = true
		f.skipPreflight = f.skipPreflight && c.record.Phase != record.PhasePreflight
	})
}

// change changes the campaign with an id, if there is one.
func (f *Fleet) change(id string, change func(c *campaign)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.campaigns[record.KeyCampaignPrefix+id]; c != nil {
		change(c)
	}
}
