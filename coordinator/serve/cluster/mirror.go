package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// mirror has the records of campaigns, workers and coordinators in memory, because every open page reads them again each second. The watch of the
// event streams keeps it current to about two seconds; this coordinator's own writes are in it at once.
type mirror struct {
	mu        sync.Mutex
	seen      time.Time // of the last change
	campaigns map[string]*entry
	others    map[string]queue.Change
	ahead     map[string]uint64 // revisions of own writes that the watch has not seen
}

// entry is a campaign with its status.
type entry struct {
	record, status []byte
	revision       uint64 // of record
	// parsed is nil if the record cannot be read or is a request; skipped is why.
	parsed  *manifest.CampaignStatus
	skipped error
	stale   bool
}

// mirrorAge is the time without a change after which a mirror is not used: the leader renews its record more often, so the board may be out of reach.
const mirrorAge = 15 * time.Second

func newMirror() *mirror {
	return &mirror{campaigns: map[string]*entry{}, others: map[string]queue.Change{}, ahead: map[string]uint64{}}
}

// enter enters a change of the board.
func (m *mirror) enter(change queue.Change, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = now
	if ahead, known := m.ahead[change.Key]; known {
		if change.Revision < ahead && !change.Deleted {
			return
		}
		delete(m.ahead, change.Key)
	}
	m.set(change)
}

// wrote enters the record of a campaign that this coordinator has just written, unless the watch was faster.
func (m *mirror) wrote(id string, change queue.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.campaigns[id]; e != nil && e.revision >= change.Revision {
		return
	}
	m.ahead[change.Key] = change.Revision
	m.set(change)
}

func (m *mirror) set(change queue.Change) {
	id, isCampaign := strings.CutPrefix(change.Key, manifest.KeyCampaignPrefix)
	status, isStatus := strings.CutPrefix(change.Key, manifest.KeyStatusPrefix)
	if isStatus {
		id = status
	}
	switch {
	case isCampaign || isStatus:
		e := m.campaigns[id]
		if e == nil {
			e = &entry{}
			m.campaigns[id] = e
		}
		if e.stale = true; isStatus {
			e.status = change.Data
		} else {
			e.record, e.revision = change.Data, change.Revision
		}
		if e.record == nil && e.status == nil {
			delete(m.campaigns, id)
		}
	case change.Deleted:
		delete(m.others, change.Key)
	case strings.HasPrefix(change.Key, manifest.KeyWorkerPrefix), strings.HasPrefix(change.Key, manifest.KeyCoordinatorPrefix):
		m.others[change.Key] = change
	}
}

// list returns the campaigns in the order of their submission, and why records are missing. Callers do not change them.
func (m *mirror) list() (all []manifest.CampaignStatus, skipped []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.campaigns)) {
		e := m.campaigns[id]
		if e.stale {
			e.parse(id)
		}
		if e.parsed != nil {
			all = append(all, *e.parsed)
		}
		if e.skipped != nil {
			skipped = append(skipped, e.skipped)
		}
	}
	slices.SortStableFunc(all, func(a, b manifest.CampaignStatus) int { return a.Campaign.Submitted.Compare(b.Campaign.Submitted) })
	return all, skipped
}

func (e *entry) parse(id string) {
	e.stale, e.parsed, e.skipped = false, nil, nil
	if e.record == nil {
		return
	}
	c, err := board.Parse(id, e.record)
	if err != nil {
		e.skipped = fmt.Errorf("read campaign %s: %w", id, err)
		return
	}
	if c.Request != nil {
		return
	}
	public(c)
	s, err := board.JoinStatus(c, e.status)
	if err != nil {
		e.skipped = fmt.Errorf("read status of campaign %s: %w", id, err)
	}
	e.parsed = &s
}

// current returns the mirror, or nil if there is none that is current.
func (c *Cluster) current() *mirror {
	m := c.mirror.Load()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.cfg.Now().Sub(m.seen) > mirrorAge {
		return nil
	}
	return m
}

// records returns the records with a prefix, of the mirror if it is current.
func (c *Cluster) records(ctx context.Context, prefix string) (map[string]queue.Change, error) {
	m := c.current()
	if m == nil {
		return board.Records(ctx, c.cfg.Board, prefix)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := maps.Clone(m.others)
	maps.DeleteFunc(found, func(key string, _ queue.Change) bool { return !strings.HasPrefix(key, prefix) })
	return found, nil
}

// wrote brings the record of a campaign that was just written into the mirror.
func (c *Cluster) wrote(ctx context.Context, id string) {
	m := c.mirror.Load()
	if m == nil {
		return
	}
	key := manifest.KeyCampaignPrefix + id
	if data, revision, err := c.cfg.Board.Get(ctx, key); err == nil { // else the watch brings it
		m.wrote(id, queue.Change{Key: key, Data: data, Revision: revision})
	}
}
