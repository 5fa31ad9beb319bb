package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"ddiff/restore/item"
	"ddiff/storage"
)

// PartsConfig describes the parts of one campaign. Fields without a stated default are required.
type PartsConfig struct {
	// Store is the cluster's store.
	Store    storage.Store
	Campaign string
	// Fold is the number of outcomes of a part. A part that is FoldInterval old may have fewer.
	Fold int
	// Relief is the shortest time between two parts that are stored early, because the result stream is nearly full.
	Relief time.Duration
	// Purge removes the campaign's outcomes up to a sequence number from the result stream.
	Purge  func(ctx context.Context, through uint64) error
	Now    func() time.Time
	Logger *slog.Logger
}

// Parts stores the outcomes of a campaign in parts that are created once, each with the outcomes since the part before it.
// A new leader reads them instead of the history of the result stream. Parts has in memory what storage does not have yet.
//
// The result stream loses the outcomes of a part when the next part is stored, so that a damaged newest part can be
// replaced, unless the stream is nearly full. What no part has yet is in the tail, which is replaced each minute. Outcomes of an older damaged part are lost: stored results settle their
// items, and failed and dead items run again. Parts may overlap, for example after a second leader: entering an outcome
// twice has no effect.
//
// A nil *Parts stores nothing and has nothing. One goroutine at a time may use it.
type Parts struct {
	cfg      PartsConfig
	ledger   *Ledger // that Enter has filled; an empty one before
	outcomes []partEntry
	since    time.Time // when the first of outcomes was added
	found    bool      // outcomes has results found in storage, which the result stream does not have
	next     int       // number of the next part of outcomes
	stream   int64     // identity of the result stream
	stored   uint64    // sequence number of the last outcome of the newest part
	emptied  uint64    // the result stream has no outcomes up to this number
	relieved time.Time // when all outcomes were stored because the result stream was nearly full
	saved    int       // number of outcomes in the tail
	savedAt  time.Time
}

const (
	// foldInterval is the time after which a part may have fewer outcomes than PartsConfig.Fold.
	foldInterval = time.Hour
	// saveInterval is the time between two writes of the tail.
	saveInterval = time.Minute
)

// tailKey is the key of the outcomes that no part has yet, in the form of a part: with the result stream they would be lost, and what they spent.
func tailKey(campaign string) string { return "campaigns/" + campaign + "/ledger/tail" }

func partPrefix(campaign string) string { return "campaigns/" + campaign + "/ledger/outcomes-" }

func partKey(campaign string, number int) string {
	return fmt.Sprintf("%s%08d", partPrefix(campaign), number)
}

// NewParts returns the parts of a campaign, without reading those in the store: see Enter.
func NewParts(cfg PartsConfig) *Parts { return &Parts{cfg: cfg, ledger: New()} }

// NoteOutcome adds an outcome to the next part. found means that it is not in the result stream.
func (p *Parts) NoteOutcome(id string, round int, to State, reason string, found bool) {
	k, ok := item.ParseIdentity(id)
	if p == nil || !ok || to == Pending {
		return
	}
	if len(p.outcomes) == 0 {
		p.since = p.cfg.Now()
	}
	p.found = p.found || found
	p.outcomes = append(p.outcomes, partEntry{k, to, round, trimReason(reason)})
}

// Fold stores the next part if it is large enough or old enough. seen is the sequence number of the last noted outcome of
// the result stream, full means that the stream is nearly full.
func (p *Parts) Fold(ctx context.Context, seen uint64, full bool) error {
	if p == nil {
		return nil
	}
	n, now := len(p.outcomes), p.cfg.Now()
	if full && now.Sub(p.relieved) >= p.cfg.Relief {
		// At the limit no outcome arrives that would make the next part due.
		p.relieved = now
		return p.FoldAll(ctx, seen)
	}
	if n >= p.cfg.Fold || p.found || (n > 0 && now.Sub(p.since) >= foldInterval) {
		return p.fold(ctx, seen)
	}
	return nil
}

// Save stores new outcomes in the tail, if it is a minute old or a change of the campaign's state is urgent.
func (p *Parts) Save(ctx context.Context, seen uint64, urgent bool) error {
	if p == nil || len(p.outcomes) == p.saved || !urgent && p.cfg.Now().Sub(p.savedAt) < saveInterval {
		return nil
	}
	data, err := p.encode(seen)
	if err == nil {
		err = p.cfg.Store.Put(ctx, tailKey(p.cfg.Campaign), data)
	}
	if err != nil {
		return fmt.Errorf("store the tail of the ledger: %w", err)
	}
	p.saved, p.savedAt = len(p.outcomes), p.cfg.Now()
	return nil
}

// encode returns the stored form of the outcomes that no part has.
func (p *Parts) encode(seen uint64) ([]byte, error) {
	return (&part{partHeader: partHeader{Campaign: p.cfg.Campaign, Stream: p.stream, Seq: seen, Uses: p.ledger.uses}, entries: p.outcomes}).encode()
}

// fold stores the outcomes that storage does not have, and then removes those of the part before from the
// result stream.
func (p *Parts) fold(ctx context.Context, seen uint64) error {
	if len(p.outcomes) == 0 {
		return nil
	}
	data, err := p.encode(seen)
	if err != nil {
		return fmt.Errorf("encode ledger: %w", err)
	}
	for {
		err = p.cfg.Store.Create(ctx, partKey(p.cfg.Campaign, p.next), data)
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("store ledger: %w", err)
		}
		p.next++ // a second leader has stored this part
	}
	p.cfg.Logger.Debug("stored a part of the ledger", "outcomes", len(p.outcomes), "through", seen)
	previous := p.stored
	p.next, p.stored, p.outcomes, p.found, p.saved = p.next+1, seen, nil, false, 0
	return p.purge(ctx, previous)
}

// FoldAll stores all outcomes, reads the part again, and removes all stored outcomes from the result stream.
func (p *Parts) FoldAll(ctx context.Context, seen uint64) error {
	if p == nil {
		return nil
	}
	if err := p.fold(ctx, seen); err != nil {
		return err
	}
	if p.next == 0 || p.stored <= p.emptied {
		return nil
	}
	key := partKey(p.cfg.Campaign, p.next-1)
	data, err := p.cfg.Store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	if _, err := decodePart(data, p.cfg.Campaign); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	if err := p.purge(ctx, p.stored); err != nil {
		return err
	}
	p.emptied = p.stored
	return nil
}

func (p *Parts) purge(ctx context.Context, through uint64) error {
	if through == 0 {
		return nil
	}
	if err := p.cfg.Purge(ctx, through); err != nil {
		return fmt.Errorf("remove stored outcomes: %w", err)
	}
	return nil
}

// Follow compares the result stream with the parts: its identity, its last sequence number, and the number of the last
// outcome that was seen. It returns the number after which to read. If the stream is another one, or its end was lost,
// its numbers say nothing about stored outcomes, and it is read from the start.
func (p *Parts) Follow(stream int64, last, seen uint64) (after uint64) {
	if p == nil || p.stream == stream && seen <= last {
		return seen
	}
	if seen > 0 {
		p.cfg.Logger.Warn("the result stream was replaced; all its outcomes are read again", "seen", seen, "last", last)
	}
	p.stream, p.stored, p.emptied = stream, 0, 0
	return 0
}

// Enter enters the outcomes of all parts and of the tail into a ledger, whose device-seconds later parts have. It returns the sequence
// number of the last of them in the result stream, 0 without one. It skips damaged ones.
func (p *Parts) Enter(ctx context.Context, l *Ledger) (seen uint64, err error) {
	if p == nil {
		return 0, nil
	}
	p.ledger = l
	for old, err := range storage.Each(ctx, p.cfg.Store, partPrefix(p.cfg.Campaign), p.read) {
		if err != nil {
			return 0, err
		}
		if old != nil {
			p.enter(l, old)
			p.next = max(p.next, old.number+1)
			if old.Seq >= p.stored || old.Stream != p.stream {
				p.stored, p.stream = old.Seq, old.Stream
			}
		}
	}
	tail, err := p.read(ctx, storage.Info{Key: tailKey(p.cfg.Campaign)})
	if err != nil || tail == nil || tail.Stream == p.stream && tail.Seq <= p.stored {
		return p.stored, err
	}
	p.enter(l, tail)
	p.outcomes, p.saved, p.since = tail.entries, len(tail.entries), p.cfg.Now()
	if p.next == 0 {
		p.stream = tail.Stream
	}
	if tail.Stream != p.stream {
		return p.stored, nil
	}
	return tail.Seq, nil
}

// read reads one part. It returns nil for a damaged part, and for one that was removed meanwhile.
func (p *Parts) read(ctx context.Context, info storage.Info) (old *part, err error) {
	data, err := p.cfg.Store.Get(ctx, info.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case errors.Is(err, storage.ErrCorrupt):
	case err != nil:
		return nil, fmt.Errorf("read ledger: %w", err)
	default:
		old, err = decodePart(data, p.cfg.Campaign)
	}
	if err == nil {
		old.number, _ = strconv.Atoi(strings.TrimPrefix(info.Key, partPrefix(p.cfg.Campaign))) // 0 for the key of another program
		return old, nil
	}
	p.cfg.Logger.Error("skipped a part of the ledger", "key", info.Key, "reason", err)
	return nil, nil
}

// enter enters the outcomes of one part.
func (p *Parts) enter(l *Ledger, old *part) {
	for _, e := range old.entries {
		l.settle(l.findIdentity(e.id), e.round, e.state, e.reason)
	}
	for _, u := range old.Uses {
		own := l.use(u)
		own.Seconds = max(own.Seconds, u.Seconds)
	}
}
