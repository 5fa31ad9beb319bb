// Package tuner measures which batch size ([Tuner.Size]) of each [Workload] is fastest on this machine, while a worker computes. It
// computes nothing itself: the worker records the times. A setting that changes speed or memory belongs to the Workload.
package tuner

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore/operator"
)

// MaxBatch is the largest number of items that are solved together.
const MaxBatch = 1024

const (
	// maxSearched is the largest batch size of the search.
	maxSearched = 32
	// gain is the ratio of times per image below which a larger batch counts as faster.
	gain = 0.95
)

// Tuner finds the batch size with the least time per image, for each [Workload]. It adds no work: a worker solves its
// first batches with the sizes 1, 2, 4, 8 and so on up to 32, while each size saves more than 5 % of the time per image. A size that does not is measured once
// more, after the one before it: another process may have begun to use the device between the two. Later batches have the smallest size within 5 % of the best.
//
// A size that exceeded the device's memory, and all larger sizes, are not tried again. All methods may be called
// concurrently.
type Tuner struct {
	log *slog.Logger

	mu     sync.Mutex
	curves map[Workload]*curve
	recent map[string]Workload // by campaign
}

// Workload is the key of a throughput curve.
type Workload struct {
	// Prior is a SHA-256.
	Prior string
	// Provider is the execution provider.
	Provider string
	Build    solver.Build
	Image    operator.Shape
	// Tiles are those of images that are divided.
	Tiles prior.Tiling
	// Operator is the SHA-256 of an operator file. Empty for built-in operators, which take little time and memory.
	Operator string
}

// curve holds the measurements of a workload.
type curve struct {
	Workload
	// Points are the measured sizes, ascending.
	Points []point
	// Best is the size to use; 0 during the search.
	Best int
	// Ceiling is the largest size that may fit into memory; 0 when none has exceeded it.
	Ceiling int
	// repeated is the sum of the sizes that were measured once more.
	repeated int
}

// point is a measured size.
type point struct {
	Batch int
	// Seconds is the time of one evaluation of the network, with its part of a step, divided by Batch.
	Seconds float64
}

// New returns a tuner without measurements.
func New(log *slog.Logger) *Tuner {
	return &Tuner{log: log, curves: map[Workload]*curve{}, recent: map[string]Workload{}}
}

// LeaseSize returns the number of items of a campaign to lease at a time: the batch size of its last workload, or 1.
func (t *Tuner) LeaseSize(campaign string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, ok := t.recent[campaign]
	if !ok {
		return 1
	}
	return t.size(w)
}

// Size returns the number of items of a workload to solve now: limit, if it is above 0 and fits into memory, else the
// next size of the search or the best size.
func (t *Tuner) Size(campaign string, w Workload, limit int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent[campaign] = w
	if limit == 0 {
		return t.size(w)
	}
	if c := t.curves[w]; c != nil && c.Ceiling > 0 {
		return min(limit, c.Ceiling)
	}
	return limit
}

func (t *Tuner) size(w Workload) int {
	c := t.curves[w]
	switch {
	case c == nil || len(c.Points) == 0:
		return 1
	case c.Best > 0:
		return c.Best
	}
	return c.next()
}

// Expected returns the longest measured time of one evaluation per image of a workload, or 0 when none is measured.
func (t *Tuner) Expected(w Workload) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	longest := 0.0
	if c := t.curves[w]; c != nil {
		for _, p := range c.Points {
			longest = max(longest, p.Seconds)
		}
	}
	return time.Duration(longest * float64(time.Second))
}

// next returns the next size of the search.
func (c *curve) next() int { return 2 * c.Points[len(c.Points)-1].Batch }

// Record records the time of one evaluation of the network for a batch, with its part of a step, per image.
func (t *Tuner) Record(w Workload, batch int, perImage time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.curve(w)
	if perImage <= 0 || c.Best > 0 || batch != t.size(w) {
		return
	}
	p := point{batch, perImage.Seconds()}
	saves := len(c.Points) == 0 || p.Seconds < gain*c.Points[len(c.Points)-1].Seconds
	c.Points = append(c.Points, p)
	switch {
	case !saves && c.repeated&batch == 0:
		c.repeated |= batch // a power of two
		c.Points = c.Points[:len(c.Points)-2]
	case !saves, c.next() > maxSearched, c.Ceiling > 0 && c.next() > c.Ceiling:
		t.endSearch(c)
	}
}

// endSearch sets Best to the smallest size whose time is within 5 % of the least. A larger size would only use more
// memory.
func (t *Tuner) endSearch(c *curve) {
	least := math.Inf(1)
	for _, p := range c.Points {
		least = min(least, p.Seconds)
	}
	c.Best = 1
	for _, p := range c.Points {
		if gain*p.Seconds <= least {
			c.Best = p.Batch
			break
		}
	}
	t.log.Info("found the best batch size", "batch", c.Best, "prior", fmt.Sprintf("%.12s", c.Prior),
		"provider", c.Provider, "height", c.Image.Height, "width", c.Image.Width, "measured", c.Points)
}

// RecordOutOfMemory records that a batch exceeded the device's memory.
func (t *Tuner) RecordOutOfMemory(w Workload, batch int) {
	if batch < 2 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.curve(w)
	if c.Ceiling == 0 || batch/2 < c.Ceiling {
		c.Ceiling = batch / 2
	}
	for len(c.Points) > 0 && c.Points[len(c.Points)-1].Batch > c.Ceiling {
		c.Points = c.Points[:len(c.Points)-1]
	}
	if c.Best > 0 || (len(c.Points) > 0 && c.next() > c.Ceiling) {
		t.endSearch(c)
	}
	t.log.Warn("a batch exceeds memory", "batch", batch, "limit", c.Ceiling)
}

func (t *Tuner) curve(w Workload) *curve {
	c := t.curves[w]
	if c == nil {
		c = &curve{Workload: w}
		t.curves[w] = c
	}
	return c
}
