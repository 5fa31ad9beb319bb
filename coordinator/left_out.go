package coordinator

import (
	"sync"

	"ddiff/manifest"
)

// leftOut collects the entries of the dataset that are no rows.
type leftOut struct {
	mu    sync.Mutex
	skips manifest.Skips
	known bool // the dataset was read here, from its beginning; else the last report has them
}

func (l *leftOut) add(e manifest.Skip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skips.Add(e)
}

func (l *leftOut) read() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
}

// list returns what is known, nil for nothing.
func (l *leftOut) list() *manifest.Skips {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return nil
	}
	skips := l.skips.Clone()
	return &skips
}
