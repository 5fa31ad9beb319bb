package gpuworker

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
)

const (
	// tunedBatch is the largest batch that a Tuner tries when its configuration says none.
	tunedBatch = 32
	// worthwhile is the share of the time per image below which a larger batch must stay to
	// be tried further: it must save more than 5 %.
	worthwhile = 0.95
)

// TunerConfig describes a Tuner. All fields have defaults.
type TunerConfig struct {
	// File is where curves are kept between processes, as JSON. Default: they are not.
	File string
	// Max is the largest batch that is tried. Default: 32.
	Max int
	// Logger is told what was found. Default: nothing is logged.
	Logger *slog.Logger
}

// Validate names the first field that is out of range.
func (c TunerConfig) Validate() error {
	if c.Max < 0 || c.Max > maxBatch {
		return fmt.Errorf("Max: %d is outside 0..%d", c.Max, maxBatch)
	}
	return nil
}

// Tuner finds the batch size at which an image costs the least time, once for everything
// that the cost depends on (see [Workload]). It makes no work of its own: a worker solves its
// first batches at the sizes 1, 2, 4, 8 and so on, for as long as each saves more than 5 % of
// the time per image, and after that at the smallest of those that are within 5 % of the best.
//
// What does not fit into the device's memory is not tried again, nor is anything larger. All
// methods may be called concurrently.
type Tuner struct {
	cfg TunerConfig

	mu     sync.Mutex
	curves map[Workload]*curve
	recent map[string]Workload // by campaign
}

// Workload is what a throughput curve depends on.
type Workload struct {
	// Prior is the SHA-256 of the prior.
	Prior string `json:"prior"`
	// Provider, Device and Runtime say what computes: the execution provider, the device and
	// a digest of everything else, such as the library's version, its settings and threads.
	Provider string `json:"provider"`
	Device   string `json:"device,omitempty"`
	Runtime  string `json:"runtime"`
	// Channels, Height and Width are the shape of an image.
	Channels int `json:"channels"`
	Height   int `json:"height"`
	Width    int `json:"width"`
}

// curve is what is known of a workload.
type curve struct {
	Workload
	// Points are the sizes that were measured, ascending.
	Points []point `json:"points,omitempty"`
	// Best is the size to use; 0 while sizes are still tried.
	Best int `json:"best,omitempty"`
	// Ceiling is the largest size that may fit into memory; 0 while none has failed.
	Ceiling int `json:"ceiling,omitempty"`
}

// point is one measured size.
type point struct {
	Batch int `json:"batch"`
	// Seconds is the time of one step divided by Batch.
	Seconds float64 `json:"seconds_per_image_step"`
}

// NewTuner reads what is known. A file that cannot be read is passed over with a warning: the
// curves are then measured again.
func NewTuner(cfg TunerConfig) (*Tuner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("make tuner: %w", err)
	}
	if cfg.Max == 0 {
		cfg.Max = tunedBatch
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tuner{cfg: cfg, curves: map[Workload]*curve{}, recent: map[string]Workload{}}
	if cfg.File == "" {
		return t, nil
	}
	known, err := readCurves(cfg.File)
	if err != nil {
		cfg.Logger.Warn("passed over the file of batch sizes", "file", cfg.File, "reason", err)
	}
	for _, c := range known {
		t.curves[c.Workload] = c
	}
	return t, nil
}

// Pull is how many items of a campaign should be leased at a time: as many as its last
// workload is solved with, or one while that is not known.
func (t *Tuner) Pull(campaign string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, ok := t.recent[campaign]
	if !ok {
		return 1
	}
	return t.size(w)
}

// Size is the number of items of a workload to solve now: limit, if it is above 0 and fits
// into memory, else the size that is tried or was found best.
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
		return min(c.Best, t.cfg.Max)
	}
	return c.next()
}

// next is the size to try.
func (c *curve) next() int { return 2 * c.Points[len(c.Points)-1].Batch }

// Measured tells what a step of a batch took per image.
func (t *Tuner) Measured(w Workload, batch int, perImage time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.curve(w)
	if perImage <= 0 || c.Best > 0 || batch != t.size(w) {
		return
	}
	p := point{batch, perImage.Seconds()}
	saves := len(c.Points) == 0 || p.Seconds < worthwhile*c.Points[len(c.Points)-1].Seconds
	c.Points = append(c.Points, p)
	if !saves || c.next() > t.cfg.Max || (c.Ceiling > 0 && c.next() > c.Ceiling) {
		t.settle(c)
	}
	t.save(c)
}

// settle ends the search: the smallest size whose time is within 5 % of the least is best. A
// larger one would only hold more items and memory.
func (t *Tuner) settle(c *curve) {
	least := math.Inf(1)
	for _, p := range c.Points {
		least = min(least, p.Seconds)
	}
	c.Best = 1
	for _, p := range c.Points {
		if worthwhile*p.Seconds <= least {
			c.Best = p.Batch
			break
		}
	}
	t.cfg.Logger.Info("found the best batch size", "batch", c.Best, "prior", fmt.Sprintf("%.12s", c.Prior),
		"provider", c.Provider, "device", c.Device, "height", c.Height, "width", c.Width, "measured", c.Points)
}

// Exceeded tells that a batch did not fit into memory.
func (t *Tuner) Exceeded(w Workload, batch int) {
	if batch < 2 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.curve(w)
	c.Ceiling = batch / 2
	for len(c.Points) > 0 && c.Points[len(c.Points)-1].Batch > c.Ceiling {
		c.Points = c.Points[:len(c.Points)-1]
	}
	if c.Best > 0 || (len(c.Points) > 0 && c.next() > c.Ceiling) {
		t.settle(c)
	}
	t.cfg.Logger.Warn("a batch does not fit into memory", "batch", batch, "now", c.Ceiling)
	t.save(c)
}

func (t *Tuner) curve(w Workload) *curve {
	c := t.curves[w]
	if c == nil {
		c = &curve{Workload: w}
		t.curves[w] = c
	}
	return c
}

// save keeps a curve. Without the file it is measured again, so an error is only worth a
// warning.
func (t *Tuner) save(c *curve) {
	if t.cfg.File == "" {
		return
	}
	if err := mergeCurve(t.cfg.File, c); err != nil {
		t.cfg.Logger.Warn("could not keep batch sizes", "file", t.cfg.File, "reason", err)
	}
}

// errCurves: the file of curves is not what mergeCurve wrote.
var errCurves = errors.New("not a file of batch sizes")
