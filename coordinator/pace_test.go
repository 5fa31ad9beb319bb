package coordinator

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestPaceDropsOldItems(t *testing.T) {
	var p pace
	now := time.Unix(1e9, 0)
	p.add(now, now, 1000)
	for range 240 {
		now = now.Add(time.Second)
		p.add(now, now, 2)
	}
	if rate, _ := p.rate(now); !(math.Abs(rate-2) <= 0.05) {
		t.Errorf("rate %g, want 2", rate)
	}
	if rate, n := p.rate(now.Add(time.Hour)); rate != 0 || n != 0 {
		t.Errorf("an hour later the rate is %g of %d", rate, n)
	}
}

// A new leader reads all outcomes at once.
func TestPaceReadsOldOutcomes(t *testing.T) {
	var p pace
	now := time.Unix(1e9, 0)
	for ago := 600; ago >= 0; ago-- {
		p.add(now, now.Add(-time.Duration(ago)*time.Second), 3)
	}
	if rate, n := p.rate(now); !(math.Abs(rate-3) <= 0.1) || n != 3*120 {
		t.Errorf("rate %g of %d items, want 3 of %d", rate, n, 3*120)
	}
}

// The interval has a confidence of 95 %: it contains the true time for about that share of campaigns with a known rate.
func TestPaceIntervalCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const rate, trials, items = 0.5, 2000, 400
	inside := 0
	for range trials {
		var p pace
		now := time.Unix(1e9, 0)
		p.add(now, now, 0)
		for range 60 {
			now = now.Add(time.Second)
			n := 0
			for left := random.ExpFloat64() / rate; left < 1; left += random.ExpFloat64() / rate {
				n++
			}
			p.add(now, now, n)
		}
		mean, low, high := p.remaining(now, items)
		if !(low <= mean) || !(mean <= high) {
			t.Fatalf("%g is not within %g to %g", mean, low, high)
		}
		if truth := items / rate; low <= truth && truth <= high {
			inside++
		}
	}
	if share := float64(inside) / trials; !(share >= 0.92) || !(share <= 0.98) {
		t.Errorf("%.3f of the intervals have the true time, want 0.95", share)
	}
}

// An item leaves the rate two minutes after it was settled, and not after it was read.
func TestPaceAgesOldOutcomes(t *testing.T) {
	now := time.Unix(1e9, 0)
	for ahead, want := range map[int]int{0: 5, 19: 5, 20: 0, 100: 0, 1000: 0} {
		var p pace
		p.add(now, now.Add(-100*time.Second), 5)
		if _, n := p.rate(now.Add(time.Duration(ahead) * time.Second)); n != want {
			t.Errorf("%d s later %d items count, want %d", ahead, n, want)
		}
	}
}

// The rate counts from the first outcome, to the fraction of a second, and needs one second.
func TestPaceBegin(t *testing.T) {
	begin := time.Unix(1e9, 0)
	var p pace
	p.add(begin.Add(800*time.Millisecond), begin.Add(300*time.Millisecond), 4)
	for after, want := range map[time.Duration]float64{1299 * time.Millisecond: 0, 1300 * time.Millisecond: 4, 2300 * time.Millisecond: 2} {
		if rate, n := p.rate(begin.Add(after)); n != 4 || !(math.Abs(rate-want) <= 1e-9) {
			t.Errorf("%s: rate %g of %d items, want %g", after, rate, n, want)
		}
	}
}

// 25 items in 50 s: the square root of the number is 5 ± 0.98.
func TestPaceInterval(t *testing.T) {
	var p pace
	now := time.Unix(1e9, 0)
	if mean, low, high := p.remaining(now, 10); mean != 0 || low != 0 || high != 0 {
		t.Error("an estimate without any item")
	}
	p.add(now, now, 25)
	mean, low, high := p.remaining(now.Add(50*time.Second), 100)
	for _, v := range [][2]float64{{mean, 200}, {low, 100 * 50 / (5.98 * 5.98)}, {high, 100 * 50 / (4.02 * 4.02)}} {
		if !(math.Abs(v[0]-v[1]) <= 1e-9) {
			t.Errorf("%g, %g to %g", mean, low, high)
		}
	}
	if mean, low, high := p.remaining(now.Add(50*time.Second), 0); mean != 0 || low != 0 || high != 0 {
		t.Errorf("no items take %g, %g to %g", mean, low, high)
	}
}
