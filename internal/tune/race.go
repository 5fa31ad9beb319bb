package tune

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"ddiff/internal/report/statistic"
)

// firstImages is the number of images of the first round.
const firstImages = 2

// Entrant is a setting in a race.
type Entrant struct {
	// Key identifies the setting. Of equal means the entrant with fewer Evaluations wins, then the smaller key.
	Key string
	// Evaluations is the number of network evaluations per measurement.
	Evaluations int
}

// Race finds the best of several settings on a list of images by successive halving on paired differences.
//
// The first round has two images; each next round has twice as many, the last one all of them. After a round but the last
// one, of the entrants in the worse half those are stopped whose 95 % interval of the difference from the leader, paired
// by image, is below zero. An entrant that fails on an image is behind all without a failure, and is stopped when another
// one has none. An image on which all of them fail is left out. The race ends when one entrant remains, or after all images;
// the entrant with the fewest failures and then the highest mean wins. Means of entrants with equally many failures are over the images
// on which none of them failed.
//
// Use Next and Settle in turns until Next returns no entrants. The values decide alone: their order does not matter.
type Race struct {
	images   []Image
	entrants []*entrant
	round    int // settled rounds
	settled  int // images of the settled rounds
	unusable []Image
	over     bool
}

// entrant is the state of one setting.
type entrant struct {
	Entrant
	values  []float64          // by image; NaN after a failure
	failed  []string           // names of images
	stopped int                // the round after which it was stopped, or 0
	against statistic.Estimate // the paired difference from the leader when it was stopped, or from the winner
	leader  string
}

// NewRace starts a race of at least one entrant on at least one image; their keys and digests differ. The order of images is that of the
// rounds.
func NewRace(entrants []Entrant, images []Image) *Race {
	r := &Race{images: slices.Clone(images), over: len(entrants) == 1}
	for _, e := range entrants {
		r.entrants = append(r.entrants, &entrant{Entrant: e})
	}
	r.order()
	return r
}

// Next returns the keys of the entrants of the next round and the images on which they have no value yet. It returns
// no keys when the race is over.
func (r *Race) Next() (keys []string, images []Image) {
	if r.over {
		return nil, nil
	}
	for _, e := range r.alive() {
		keys = append(keys, e.Key)
	}
	return keys, r.images[r.settled:r.target()]
}

// target is the number of images after the present round.
func (r *Race) target() int { return min(len(r.images), max(firstImages, 2*r.settled)) }

// Settle ends a round of a race that is not over with the values of its entrants on its images: higher is better, NaN is a failure, and
// none is infinite.
func (r *Race) Settle(value func(key string, img Image) float64) {
	for _, e := range r.alive() {
		for _, img := range r.images[r.settled:r.target()] {
			e.values = append(e.values, value(e.Key, img))
		}
	}
	from := r.settled
	r.settled = r.target()
	r.round++
	r.dropUnusable(from)
	r.order()
	leader := r.entrants[0]
	for i, e := range r.alive() {
		e.against, e.leader = r.difference(e, leader), leader.Key
		if r.settled < len(r.images) && r.stops(i, e) {
			e.stopped = r.round
		}
	}
	r.over = r.settled == len(r.images) || len(r.alive()) == 1
}

// stops reports whether the entrant of a rank is stopped.
func (r *Race) stops(rank int, e *entrant) bool {
	alive := r.alive()
	keep := (len(alive) + 1) / 2
	switch {
	case len(e.failed) > 0:
		return len(alive[0].failed) == 0
	case rank < keep || r.mean(e) == r.mean(alive[keep-1]):
		return false
	}
	return e.against.HalfWidth != nil && e.against.Mean+*e.against.HalfWidth < 0
}

// alive returns the entrants that were not stopped, the best first.
func (r *Race) alive() []*entrant {
	var out []*entrant
	for _, e := range r.entrants {
		if e.stopped == 0 {
			out = append(out, e)
		}
	}
	return out
}

// dropUnusable removes the images of the last round on which every entrant failed: they say nothing about settings. from is
// the number of images before the round.
func (r *Race) dropUnusable(from int) {
	alive := r.alive()
	for i := r.settled - 1; i >= from; i-- {
		if slices.ContainsFunc(alive, func(e *entrant) bool { return !math.IsNaN(e.values[i]) }) {
			continue
		}
		r.unusable = append(r.unusable, r.images[i])
		r.images = slices.Delete(r.images, i, i+1)
		r.settled--
		for _, e := range alive {
			e.values = slices.Delete(e.values, i, i+1)
		}
	}
	for _, e := range alive {
		e.failed = nil
		for i, v := range e.values {
			if math.IsNaN(v) {
				e.failed = append(e.failed, r.images[i].Name)
			}
		}
	}
}

// order sorts the entrants: those that were stopped last, by failures, mean, evaluations and key.
func (r *Race) order() {
	slices.SortFunc(r.entrants, func(a, b *entrant) int {
		return cmp.Or(
			cmp.Compare(b.rounds(), a.rounds()),
			cmp.Compare(len(a.failed), len(b.failed)),
			cmp.Compare(r.mean(b), r.mean(a)),
			cmp.Compare(a.Evaluations, b.Evaluations),
			strings.Compare(a.Key, b.Key),
		)
	})
}

// rounds is the number of rounds that an entrant survived.
func (e *entrant) rounds() int {
	if e.stopped == 0 {
		return math.MaxInt
	}
	return e.stopped
}

// mean is the mean over the images on which no entrant with as many failures failed, 0 if there are none: order compares the means
// of these entrants, and their images differ.
func (r *Race) mean(e *entrant) float64 {
	if len(e.failed) == 0 {
		return statistic.Average(e.values)
	}
	var shared []float64
	for i, v := range e.values {
		if !slices.ContainsFunc(r.entrants, func(o *entrant) bool {
			return o.stopped == e.stopped && len(o.failed) == len(e.failed) && math.IsNaN(o.values[i])
		}) {
			shared = append(shared, v)
		}
	}
	return statistic.Average(shared)
}

func (e *entrant) defined() []float64 {
	return slices.DeleteFunc(slices.Clone(e.values), math.IsNaN)
}

// difference is the mean of a - b over the images on which neither failed.
func (r *Race) difference(a, b *entrant) statistic.Estimate {
	var d []float64
	for i := range min(len(a.values), len(b.values)) {
		if v := a.values[i] - b.values[i]; !math.IsNaN(v) {
			d = append(d, v)
		}
	}
	return statistic.Mean(d)
}
