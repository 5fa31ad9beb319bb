package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/restore/item"
)

const (
	// paceBytes limits the file of a pace, which has one number.
	paceBytes = 100
	// leastObserved is the time in seconds from which a pace is remembered: shorter ones are mostly of compilation and of small pictures.
	leastObserved = 1
)

// Pace is how fast this machine computes the network of a prior. The user's cache remembers it, so that the next command can say how long it takes.
type Pace struct {
	file          string
	known         float64 // seconds per unit of Work; 0: unknown
	work, seconds float64 // observed
}

// Pace returns the remembered pace of a prior, by its SHA-256, on the device of the flags.
func (o ComputeOptions) Pace(prior string, precision onnxruntime.Precision) *Pace {
	p := &Pace{}
	user, err := os.UserCacheDir()
	if err != nil {
		return p
	}
	key := fmt.Sprintln(prior, o.Device, o.Threads, cmp.Or(string(precision), o.precision, string(onnxruntime.FP32)))
	p.file = filepath.Join(user, "ddiff", "pace", regular.SHA256([]byte(key))[:24]+".json")
	if data, err := regular.Read(p.file, paceBytes); err != nil || json.Unmarshal(data, &p.known) != nil {
		p.known = 0
	}
	return p
}

// Work is what the network computes for an item: passes times pixels, where a backward pass counts as two. It is the unit of a pace.
func Work(it *item.Item, c item.Cost) float64 {
	pixels := it.Height * it.Width
	if t := (prior.Tiling{Side: it.Tile, Overlap: it.Overlap}); t.Divides(it.Height, it.Width) {
		if g, err := prior.NewGrid(t, it.Height, it.Width, 1); err == nil {
			pixels = g.Len() * g.TileHeight() * g.TileWidth()
		}
	}
	return float64(pixels) * float64(c.Network+2*c.NetworkBackward)
}

// Time is how long work takes; 0: not known.
func (p *Pace) Time(work float64) time.Duration {
	return time.Duration(work * p.known * float64(time.Second))
}

// Observe adds work that took so many seconds.
func (p *Pace) Observe(work, seconds float64) { p.work, p.seconds = p.work+work, p.seconds+seconds }

// Store remembers what was observed, if it took long enough. Without a writable cache nothing is remembered.
func (p *Pace) Store() {
	if p.file == "" || p.work == 0 || p.seconds < leastObserved {
		return
	}
	if data, err := json.Marshal(p.seconds / p.work); err == nil && os.MkdirAll(filepath.Dir(p.file), 0o755) == nil {
		_ = regular.Replace(p.file, data, 0o644)
	}
}

// About rounds a time for people.
func About(d time.Duration) time.Duration {
	switch {
	case d > time.Hour:
		return d.Round(10 * time.Minute)
	case d > 10*time.Minute:
		return d.Round(time.Minute)
	case d > time.Minute:
		return d.Round(10 * time.Second)
	}
	return d.Round(time.Second)
}
