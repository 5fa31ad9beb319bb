package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/shard"
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

// Parts stores the ledger of a campaign in parts that are created once: parts of outcomes, each with the outcomes since
// the part before it, and parts of windows, each with the identities of some windows. A new leader reads them instead of
// the windows and the history of the result stream. Parts has in memory what storage does not have yet.
//
// The result stream loses the outcomes of a part when the next part is stored, so that a damaged newest part can be
// replaced, unless the stream is nearly full. Outcomes of an older damaged part are lost: stored results settle their
// items, and failed and dead items run again. Parts may overlap, for example after a second leader: entering an outcome
// twice has no effect.
//
// A nil *Parts stores nothing. One goroutine at a time may use it.
type Parts struct {
	cfg      PartsConfig
	outcomes []partEntry
	since    time.Time // when the first of outcomes was added
	found    bool      // outcomes has results found in storage, which the result stream does not have
	next     int       // number of the next part of outcomes
	stream   int64     // identity of the result stream
	stored   uint64    // sequence number of the last outcome of the newest part
	emptied  uint64    // the result stream has no outcomes up to this number
	relieved time.Time // when all outcomes were stored because the result stream was nearly full
	windows  []notedWindow
}

// notedWindow has the entries of a window.
type notedWindow struct {
	Window
	entries []partEntry
}

const (
	// FoldWindows is the number of windows of a part.
	FoldWindows = 16
	// foldInterval is the time after which a part may have fewer outcomes than PartsConfig.Fold.
	foldInterval = time.Hour
	// foldAtExit is the smallest number of outcomes that a leader stores at its end, exitTimeout the limit for it.
	foldAtExit  = 1000
	exitTimeout = 2 * time.Second
	// partsParallel is the number of parts that are read and decoded at a time, partsChunk the number in memory.
	partsParallel = 8
	partsChunk    = 32
)

func partPrefix(campaign string) string        { return "campaigns/" + campaign + "/ledger/" }
func outcomePartPrefix(campaign string) string { return partPrefix(campaign) + "outcomes-" }
func windowPartPrefix(campaign string) string  { return partPrefix(campaign) + "windows-" }

func outcomePartKey(campaign string, number int) string {
	return fmt.Sprintf("%s%08d", outcomePartPrefix(campaign), number)
}

func windowPartKey(campaign string, first, last int) string {
	return fmt.Sprintf("%s%08d-%08d", windowPartPrefix(campaign), first, last)
}

// NewParts returns the parts of a campaign, without reading those in the store: see EnterWindows and EnterOutcomes.
func NewParts(cfg PartsConfig) *Parts { return &Parts{cfg: cfg} }

// NoteOutcome adds an outcome to the next part. found means that it is not in the result stream.
func (p *Parts) NoteOutcome(id string, round int, to State, reason string, found bool) {
	k, ok := ParseIdentity(id)
	if p == nil || !ok || to == Pending {
		return
	}
	if len(p.outcomes) == 0 {
		p.since = p.cfg.Now()
	}
	p.found = p.found || found
	p.outcomes = append(p.outcomes, partEntry{k, to, round, trimReason(reason)})
}

// NoteWindow adds a stored window to the next part of windows. size is the size of its object in bytes.
func (p *Parts) NoteWindow(w *shard.Window, size int64) {
	if p == nil {
		return
	}
	noted := notedWindow{Window: Window{
		Number: w.Number, Item: w.Item, Items: w.Header.Items, Failures: len(w.Failed), Rows: w.Rows, Changed: w.Changed, Size: size,
	}}
	noted.entries = make([]partEntry, 0, w.Header.Items)
	for _, it := range w.Items {
		if k, ok := ParseIdentity(it.ID); ok {
			noted.entries = append(noted.entries, partEntry{id: k})
		}
	}
	for _, f := range w.Failed {
		if k, ok := ParseIdentity(f.Item.ID); ok {
			noted.entries = append(noted.entries, partEntry{id: k, state: Failed, reason: trimReason(f.Reason)})
		}
	}
	if len(noted.entries) == w.Header.Items {
		p.windows = append(p.windows, noted)
	}
}

// Waiting returns the numbers of the outcomes and of the windows that no part has.
func (p *Parts) Waiting() (outcomes, windows int) {
	if p == nil {
		return 0, 0
	}
	return len(p.outcomes), len(p.windows)
}

// Fold stores the next parts if they are large enough or old enough. seen is the sequence number of the last noted
// outcome of the result stream, full means that the stream is nearly full.
func (p *Parts) Fold(ctx context.Context, seen uint64, full bool) error {
	if len(p.windows) >= FoldWindows {
		if err := p.foldWindows(ctx); err != nil {
			return err
		}
	}
	n := len(p.outcomes)
	now := p.cfg.Now()
	if full && now.Sub(p.relieved) >= p.cfg.Relief {
		// At the limit no outcome arrives that would make the next part due.
		p.relieved = now
		return p.FoldAll(ctx, seen)
	}
	if n >= p.cfg.Fold || p.found || (n > 0 && now.Sub(p.since) >= foldInterval) {
		return p.foldOutcomes(ctx, seen)
	}
	return nil
}

// foldOutcomes stores the outcomes that storage does not have, and then removes those of the part before from the
// result stream.
func (p *Parts) foldOutcomes(ctx context.Context, seen uint64) error {
	if len(p.outcomes) == 0 {
		return nil
	}
	data, err := (&part{partHeader: partHeader{Campaign: p.cfg.Campaign, Stream: p.stream, Seq: seen}, entries: p.outcomes}).encode()
	if err != nil {
		return fmt.Errorf("encode ledger: %w", err)
	}
	for {
		err = p.cfg.Store.Create(ctx, outcomePartKey(p.cfg.Campaign, p.next), data)
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
	p.next, p.stored, p.outcomes, p.found = p.next+1, seen, nil, false
	return p.purge(ctx, previous)
}

// FoldAll stores all outcomes, reads the part again, and removes all stored outcomes from the result stream.
func (p *Parts) FoldAll(ctx context.Context, seen uint64) error {
	if err := p.foldOutcomes(ctx, seen); err != nil {
		return err
	}
	if p.next == 0 || p.stored <= p.emptied {
		return nil
	}
	key := outcomePartKey(p.cfg.Campaign, p.next-1)
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

// FoldAtExit stores the outcomes for the next leader if there are many, also after the end of ctx. An error costs the
// next leader some time only.
func (p *Parts) FoldAtExit(ctx context.Context, seen uint64) {
	if p == nil || len(p.outcomes) < foldAtExit {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	if err := p.foldOutcomes(ctx, seen); err != nil {
		p.cfg.Logger.Warn("could not store the ledger for the next leader", "reason", err)
	}
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
	if p.stream == stream && seen <= last {
		return seen
	}
	if seen > 0 {
		p.cfg.Logger.Warn("the result stream was replaced; all its outcomes are read again", "seen", seen, "last", last)
	}
	p.stream, p.stored, p.emptied = stream, 0, 0
	return 0
}

// foldWindows stores the identities of the windows that no part has.
func (p *Parts) foldWindows(ctx context.Context) error {
	for chunk := range slices.Chunk(p.windows, FoldWindows) {
		if len(chunk) < FoldWindows {
			p.windows = slices.Clone(chunk)
			return nil
		}
		next := part{partHeader: partHeader{Campaign: p.cfg.Campaign}}
		for _, w := range chunk {
			next.Windows = append(next.Windows, w.Window)
			next.entries = append(next.entries, w.entries...)
		}
		data, err := next.encode()
		if err != nil {
			return fmt.Errorf("encode ledger: %w", err)
		}
		key := windowPartKey(p.cfg.Campaign, chunk[0].Number, chunk[len(chunk)-1].Number)
		if err := p.cfg.Store.Create(ctx, key, data); err != nil && !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("store ledger: %w", err)
		}
	}
	p.windows = nil
	return nil
}

// Forget removes the parts that have a window, before the window is replaced.
func (p *Parts) Forget(ctx context.Context, number int) error {
	p.windows = slices.DeleteFunc(p.windows, func(w notedWindow) bool { return w.Number == number })
	prefix := windowPartPrefix(p.cfg.Campaign)
	for info, err := range p.cfg.Store.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list ledger: %w", err)
		}
		var first, last int
		_, err := fmt.Sscanf(strings.TrimPrefix(info.Key, prefix), "%d-%d", &first, &last)
		if err == nil && (number < first || number > last) {
			continue
		}
		if err := p.cfg.Store.Delete(ctx, info.Key); err != nil {
			return fmt.Errorf("remove ledger: %w", err)
		}
	}
	return nil
}

// EnterWindows adds the items of windows to a ledger without reading the windows. stored has the objects of all windows
// in their order. known has a description for each window that a part has, and nil for the others.
func (p *Parts) EnterWindows(ctx context.Context, l *Ledger, stored []storage.Info) (known []*Window, err error) {
	known = make([]*Window, len(stored))
	if p == nil || len(stored) <= FoldWindows {
		return known, nil
	}
	return known, p.each(ctx, windowPartPrefix(p.cfg.Campaign), func(_ string, old *part) {
		entries := old.entries
		for _, w := range old.Windows {
			if w.Items < 0 || w.Items > len(entries) {
				return
			}
			n := w.Number
			if n >= 0 && n < len(stored) && known[n] == nil && stored[n].Key == shard.Key(p.cfg.Campaign, n) && stored[n].Size == w.Size {
				for _, e := range entries[:w.Items] {
					l.addIdentity(e.id)
					if e.state == Failed {
						l.settleEntry(l.findIdentity(e.id), 0, Failed, e.reason)
					}
				}
				known[n] = &w
			}
			entries = entries[w.Items:]
		}
	})
}

// EnterOutcomes enters the outcomes of all parts into a ledger. It returns the sequence number of the last of them in
// the result stream, 0 without a part.
func (p *Parts) EnterOutcomes(ctx context.Context, l *Ledger) (seen uint64, err error) {
	prefix := outcomePartPrefix(p.cfg.Campaign)
	err = p.each(ctx, prefix, func(key string, old *part) {
		for _, e := range old.entries {
			l.settleEntry(l.findIdentity(e.id), e.round, e.state, e.reason)
		}
		if old.Seq >= p.stored || old.Stream != p.stream {
			p.stored, p.stream = old.Seq, old.Stream
		}
		var number int
		if _, err := fmt.Sscanf(strings.TrimPrefix(key, prefix), "%d", &number); err == nil {
			p.next = max(p.next, number+1)
		}
	})
	return p.stored, err
}

// each reads the parts with a prefix, in the order of their keys, and calls f with each. It reads several at a time. It
// skips damaged ones.
func (p *Parts) each(ctx context.Context, prefix string, f func(key string, old *part)) error {
	var keys []string
	for info, err := range p.cfg.Store.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list ledger: %w", err)
		}
		keys = append(keys, info.Key)
	}
	for chunk := range slices.Chunk(keys, partsChunk) {
		parts := make([]*part, len(chunk))
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(partsParallel)
		for i, key := range chunk {
			group.Go(func() error {
				data, err := p.cfg.Store.Get(inner, key)
				switch {
				case errors.Is(err, storage.ErrNotFound): // it was removed meanwhile
					return nil
				case errors.Is(err, storage.ErrCorrupt):
				case err != nil:
					return fmt.Errorf("read ledger: %w", err)
				default:
					parts[i], err = decodePart(data, p.cfg.Campaign)
				}
				if err != nil {
					p.cfg.Logger.Error("skipped a part of the ledger", "key", key, "reason", err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for i, old := range parts {
			if old != nil {
				f(chunk[i], old)
			}
		}
	}
	return nil
}
