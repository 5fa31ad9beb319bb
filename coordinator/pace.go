package coordinator

import (
	"math"
	"time"
)

// paceWindow is the time over which the rate of a campaign is averaged.
const paceWindow = 2 * time.Minute

// pace counts settled items per second.
type pace struct {
	began   time.Time
	buckets [int(paceWindow / time.Second)]int
	second  int64 // of the newest bucket
}

// add counts n items that were settled at the given time, by the worker's clock. It may be long past when a new leader
// reads old outcomes. Zero and future times count as now.
func (p *pace) add(now, at time.Time, n int) {
	p.advance(now)
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

// advance clears the buckets of the seconds that have passed.
func (p *pace) advance(now time.Time) {
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

// rate returns the recent number of items per second, and the number of items it is based on.
func (p *pace) rate(now time.Time) (perSecond float64, n int) {
	p.advance(now)
	for _, b := range p.buckets {
		n += b
	}
	over := min(now.Sub(p.began), paceWindow).Seconds()
	if over < 1 || n == 0 {
		return 0, n
	}
	return float64(n) / over, n
}

// remaining estimates the time for the remaining items in seconds, with its 95 % interval. It treats the number of
// settled items as a Poisson variable; its square root has a standard deviation of about 1/2, independent of the mean.
func (p *pace) remaining(now time.Time, items int) (mean, low, high float64) {
	rate, n := p.rate(now)
	if rate == 0 || items == 0 {
		return 0, 0, 0
	}
	seconds := float64(n) / rate
	root := math.Sqrt(float64(n))
	fast, slow := (root+0.98)*(root+0.98)/seconds, math.Max(root-0.98, 0.1)*math.Max(root-0.98, 0.1)/seconds
	return float64(items) / rate, float64(items) / fast, float64(items) / slow
}
