package coordinator

import (
	"sync"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
)

// runners has the runner of each active campaign of a term, and the owner of each campaign of the board.
type runners struct {
	mu     sync.Mutex
	byID   map[string]*runner
	owners map[string]string
	create func(c *record.Campaign) *runner
	start  func(r *runner)
}

func newRunners(create func(c *record.Campaign) *runner, start func(r *runner)) *runners {
	return &runners{byID: map[string]*runner{}, owners: map[string]string{}, create: create, start: start}
}

// deliver passes a record to the campaign's runner. It starts the runner of an active campaign that has none.
func (s *runners) deliver(c *record.Campaign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[c.ID] = c.Owner
	r := s.byID[c.ID]
	if r == nil {
		if board.Active(c) {
			s.begin(c)
		}
		return
	}
	r.offer(c)
}

// begin starts the runner of a campaign. The caller holds s.mu.
func (s *runners) begin(c *record.Campaign) *runner {
	r := s.create(c)
	s.byID[c.ID] = r
	r.offer(c)
	s.start(r)
	return r
}

// ask gives a command to the runner of a campaign, which it starts if there is none.
func (s *runners) ask(c *record.Campaign, key, verb string, body board.Command) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byID[c.ID]
	if r == nil {
		r = s.begin(c) // whose goroutine waits for s.mu
	}
	return r.ask(key, verb, body)
}

// owned returns the number of campaigns of an owner.
func (s *runners) owned(owner string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.owners {
		if other == owner {
			n++
		}
	}
	return n
}

// next returns the record with which the runner continues. It returns nil and removes the runner when the campaign needs
// no coordinator; a later record then creates a new runner.
func (s *runners) next(r *runner) *record.Campaign {
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
	r.refuse(errGone)
	delete(s.byID, r.id)
}

// stop cancels the runner of a deleted campaign.
func (s *runners) stop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, id)
	if r, ok := s.byID[id]; ok {
		r.stop()
	}
}
