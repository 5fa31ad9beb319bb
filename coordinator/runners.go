package coordinator

import (
	"sync"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// runners has the runner of each active campaign.
type runners struct {
	mu   sync.Mutex
	byID map[string]*runner
}

// deliver passes a record to the campaign's runner. It creates the runner of an active campaign that has none, and
// reports so.
func (s *runners) deliver(c *manifest.Campaign, revision uint64, create func() *runner) (r *runner, created bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[c.ID]
	if !ok {
		if !board.Active(c) {
			return nil, false
		}
		r = create()
		s.byID[c.ID] = r
	}
	r.offer(c, revision)
	return r, !ok
}

// restart makes the runner of a campaign, if it has one, continue with a record of a board that was restored from a backup.
func (s *runners) restart(c *manifest.Campaign, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byID[c.ID]; r != nil {
		r.restart(c, revision)
	}
}

// next returns the record with which the runner continues. It returns nil and removes the runner when the campaign needs
// no coordinator; a later record then creates a new runner.
func (s *runners) next(r *runner) *manifest.Campaign {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := r.nextRecord()
	if c == nil {
		delete(s.byID, r.id)
	}
	return c
}

// has reports whether a campaign has a runner.
func (s *runners) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id] != nil
}

// remove deletes a runner that was stopped.
func (s *runners) remove(r *runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, r.id)
}

// stop cancels the runner of a deleted campaign.
func (s *runners) stop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.byID[id]; ok {
		r.stop()
	}
}
