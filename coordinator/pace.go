package coordinator

import (
	"maps"
	"math"
	"time"
)

// paceWindow is the time over which the rate of a campaign is averaged.
const paceWindow = 2 * time.Minute

// pace counts settled items per second.
type pace struct {
	began   time.Time
	settled map[int64]int // by second
}

// begin notes when the counting begins.
func (p *pace) begin(now time.Time) {
	if p.settled == nil {
		p.began, p.settled = now, map[int64]int{}
	}
}

// add counts n items that were settled at the given time, by the clock of this process. It may be long past when a new leader
// reads old outcomes.
func (p *pace) add(now, at time.Time, n int) {
	p.begin(now)
	if now.Unix()-at.Unix() >= int64(paceWindow.Seconds()) {
		return
	}
	p.settled[at.Unix()] += n
	if at.Before(p.began) {
		p.began = at
	}
}

// rate returns the recent number of items per second, and the number of items it is based on.
func (p *pace) rate(now time.Time) (perSecond float64, n int) {
	p.begin(now)
	maps.DeleteFunc(p.settled, func(second int64, _ int) bool { return now.Unix()-second >= int64(paceWindow.Seconds()) })
	for _, settled := range p.settled {
		n += settled
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
