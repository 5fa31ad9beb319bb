package fleet

import "time"

// Suspend skips a campaign for a while, because this worker cannot read its files.
func (f *Fleet) Suspend(id string, d time.Duration, reason error) {
	if c := f.byID(id); c != nil {
		f.postpone(c, d, reason)
	}
}

// LeaseOne sets whether single items of a campaign are leased, because its queue holds items that run alone.
func (f *Fleet) LeaseOne(id string, one bool) {
	if c := f.byID(id); c != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.leaseOne = one
	}
}

// LeaseFirst leases items of a campaign before those of the others of its priority, once.
func (f *Fleet) LeaseFirst(id string) {
	if c := f.byID(id); c != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.first = true
	}
}

// byID returns the campaign with an id, or nil.
func (f *Fleet) byID(id string) *campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.campaigns {
		if c.record.ID == id {
			return c
		}
	}
	return nil
}
