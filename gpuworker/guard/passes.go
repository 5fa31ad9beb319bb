package guard

import (
	"math/rand/v2"
	"time"
)

const (
	// maxPasses is how often a worker releases an item that it disputed for other workers. Then the worker gives the
	// second opinion itself.
	maxPasses = 5
	// unprovenPasses is maxPasses of a worker that has restored no item of the campaign: it may be sick, and the other
	// workers busy. With the longest pause it is half an hour.
	unprovenPasses = 60
	// passPause is the pause if there is nothing else to lease, after the first pass. It doubles with each pass up to
	// maxPasses, times a random factor from 1/2 to 3/2: two workers that wait for each other's opinion would else wake
	// together, and each lease the item that it disputed itself.
	passPause = time.Second
	// passesEnd is how long a worker then passes no further items.
	passesEnd = 5 * time.Minute
)

// Passes decides which items that a worker disputed it passes to other workers. Only one goroutine uses it.
type Passes struct {
	now    func() time.Time
	again  time.Time // no item is passed before
	passed map[string]bool
}

// NewPasses returns passes without items.
func NewPasses(now func() time.Time) *Passes { return &Passes{now: now, passed: map[string]bool{}} }

// May reports whether the worker may pass an item that workers passed n times. proven: it has restored an item of the campaign.
func (p *Passes) May(n int, proven bool) bool {
	limit := unprovenPasses
	if proven {
		limit = maxPasses
	}
	if p.now().Before(p.again) {
		return false
	}
	if n < limit {
		return true
	}
	p.again = p.now().Add(passesEnd)
	return false
}

// Add records a passed item, and reports whether it was passed before since the last pause: then the queue has nothing else for the worker.
func (p *Passes) Add(id string) (again bool) {
	again = p.passed[id]
	p.passed[id] = true
	return again
}

// Pause forgets the passed items, and returns how long other workers get to lease them first, of which the least passed one was passed n times.
func (p *Passes) Pause(n int) time.Duration {
	clear(p.passed)
	pause := passPause << min(n, maxPasses) / 2
	return pause + rand.N(2*pause)
}
