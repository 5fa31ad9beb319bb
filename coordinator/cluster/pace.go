package cluster

import (
	"math"
	"time"
)

// paceWindow is the time over which a campaign's rate is taken.
const paceWindow = 2 * time.Minute

// pace counts settled items, second by second.
type pace struct {
	began   time.Time
	buckets [int(paceWindow / time.Second)]int
	second  int64 // of the newest bucket
}

// add counts items that were settled at a time, which is that of another clock: a leader that
// takes over reads of outcomes that are long ago. Zero, and what is yet to come, is now.
func (p *pace) add(now, at time.Time, n int) {
	p.turn(now)
	if at.IsZero() || at.Unix() > p.second {
		at = now
	}
	age := max(p.second-at.Unix(), 0)
	if age >= int64(len(p.buckets)) {
		return
	}
	p.buckets[(p.second-age)%int64(len(p.buckets))] += n
	if at.Before(p.began) {
		p.began = at
	}
}

// turn empties the buckets of the seconds that have passed.
func (p *pace) turn(now time.Time) {
	if p.began.IsZero() {
		p.began, p.second = now, now.Unix()
	}
	for p.second < now.Unix() {
		p.second++
		p.buckets[p.second%int64(len(p.buckets))] = 0
		if now.Unix()-p.second > int64(len(p.buckets)) {
			p.second = now.Unix() - int64(len(p.buckets))
		}
	}
}

// rate is the number of items per second lately, and the number that it was taken from.
func (p *pace) rate(now time.Time) (perSecond float64, n int) {
	p.turn(now)
	for _, b := range p.buckets {
		n += b
	}
	over := min(now.Sub(p.began), paceWindow).Seconds()
	if over < 1 || n == 0 {
		return 0, n
	}
	return float64(n) / over, n
}

// left is the expected time for the remaining items, in seconds, and its 95 % interval. The
// number of items in a time is taken as a Poisson variable, whose square root has about the
// same spread (1/2) whatever its mean.
func (p *pace) left(now time.Time, items int) (mean, low, high float64) {
	rate, n := p.rate(now)
	if rate == 0 || items == 0 {
		return 0, 0, 0
	}
	seconds := float64(n) / rate
	root := math.Sqrt(float64(n))
	fast, slow := (root+0.98)*(root+0.98)/seconds, math.Max(root-0.98, 0.1)*math.Max(root-0.98, 0.1)/seconds
	return float64(items) / rate, float64(items) / fast, float64(items) / slow
}
