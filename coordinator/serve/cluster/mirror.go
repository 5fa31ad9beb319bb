package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// mirror has the records of the board in memory, because every open page reads them again each second. The watch of the event streams keeps
// it current to about two seconds. After a write of this coordinator it is not used until the watch has brought the write.
type mirror struct {
	mu       sync.Mutex
	records  map[string]queue.Change
	seen     time.Time // of the last change
	revision uint64    // of the last change
	written  uint64    // revision of the last own write

	// joined: the campaigns, and why records are missing, are those of the records.
	joined    bool
	campaigns []manifest.CampaignStatus
	skipped   []error
}

// mirrorAge is the time without a change after which a mirror is not used: the leader renews its record more often, so the board may be out of reach.
const mirrorAge = 15 * time.Second

func newMirror() *mirror { return &mirror{records: map[string]queue.Change{}} }

// enter enters a change of the board.
func (m *mirror) enter(change queue.Change, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = now
	if change.Ready {
		return
	}
	if change.Revision < m.revision {
		m.written = 0 // the board was restored from a copy
	}
	m.revision = change.Revision
	if m.records[change.Key] = change; change.Deleted {
		delete(m.records, change.Key)
	}
	if strings.HasPrefix(change.Key, manifest.KeyCampaignPrefix) || strings.HasPrefix(change.Key, manifest.KeyStatusPrefix) {
		m.joined = false
	}
}

// below returns the records with a prefix. The caller holds m.mu.
func (m *mirror) below(prefix string) map[string]queue.Change {
	found := maps.Clone(m.records)
	maps.DeleteFunc(found, func(key string, _ queue.Change) bool { return !strings.HasPrefix(key, prefix) })
	return found
}

// list returns the campaigns in the order of their submission, and why records are missing. Callers do not change them.
func (m *mirror) list() (all []manifest.CampaignStatus, skipped []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.joined {
		m.campaigns, m.skipped = board.Join(m.below(manifest.KeyCampaignPrefix), m.below(manifest.KeyStatusPrefix))
		for _, s := range m.campaigns {
			public(s.Campaign)
		}
		m.joined = true
	}
	return slices.Clone(m.campaigns), m.skipped
}

// current returns the mirror, or nil if there is none that is current.
func (c *Cluster) current() *mirror {
	m := c.mirror.Load()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision < m.written || c.cfg.Now().Sub(m.seen) > mirrorAge {
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
	return m.below(prefix), nil
}

// wrote tells the mirror of the record of a campaign that was just written.
func (c *Cluster) wrote(ctx context.Context, id string) {
	m := c.mirror.Load()
	if m == nil {
		return
	}
	if _, revision, err := c.cfg.Board.Get(ctx, manifest.KeyCampaignPrefix+id); err == nil {
		m.mu.Lock()
		m.written = max(m.written, revision)
		m.mu.Unlock()
	}
}
