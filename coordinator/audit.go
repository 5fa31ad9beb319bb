package coordinator

import (
	"log/slog"
	"sync"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// audit logs what users have asked for, by the HTTP API or by NATS. A line is written at least once: a leader that ends between a line and
// the next write of the record leaves it to the next leader, which logs it again with the same request.
type audit struct {
	mu    sync.Mutex
	heard map[string]int // by campaign: the number of the last change with a line
}

// hear logs the changes of a record that have no line yet.
func (a *audit) hear(log *slog.Logger, c *manifest.Campaign) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.heard[c.ID]
	if !known || c.Asked < last { // a board from a backup
		last = c.Heard
	}
	for _, ask := range c.Asks[max(0, len(c.Asks)-manifest.MaxAsks):] {
		if ask.Number > last && ask.Number <= c.Asked {
			board.LogAsk(log, ask, "campaign", c.ID)
		}
	}
	a.heard[c.ID] = c.Asked
}

// reset begins a term: another leader may have logged changes meanwhile.
func (a *audit) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = map[string]int{}
}

// of returns the number of the last change of a campaign with a line.
func (a *audit) of(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard[id]
}

// forget drops a campaign that has left the board.
func (a *audit) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.heard, id)
}
