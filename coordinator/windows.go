package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/internal/coordinator/shard"
	"ddiff/storage"
)

// windows is the sequence of windows of a campaign in storage.
type windows struct {
	store    storage.Store
	campaign string

	stored     int              // number of windows
	published  int              // number of windows that the queue has had
	next       shard.Position   // where the next window begins
	complete   bool             // the last window is in storage
	sound      int              // number of the first window with items, -1 without one
	unverified int              // items of windows below this number may have stored results
	warning    string           // how the dataset has changed, for the status
	failures   map[int]failures // items that cannot be restored, by window
	appends    map[string]int   // numbers of the first windows of appended rows, by command
}

// failures are items of a window that cannot be restored, with the reason of the first.
type failures struct {
	items  int
	reason string
}

func newWindows(store storage.Store, campaign string) windows {
	return windows{store: store, campaign: campaign, sound: -1, appends: map[string]int{}}
}

// noteFailures notes the items of a window that cannot be restored.
func (s *windows) noteFailures(w *shard.Window) {
	if s.failures == nil {
		s.failures = map[int]failures{}
	}
	if delete(s.failures, w.Number); len(w.Failed) > 0 {
		s.failures[w.Number] = failures{len(w.Failed), w.Failed[0].Reason}
	}
}

// describe returns the warning of the status: how the dataset has changed, and why items cannot be restored.
func (s *windows) describe() string {
	n, reason := 0, ""
	for _, number := range slices.Sorted(maps.Keys(s.failures)) {
		n += s.failures[number].items
		reason = cmp.Or(reason, s.failures[number].reason)
	}
	if n == 0 {
		return s.warning
	}
	text := fmt.Sprintf("%d items cannot be restored, the first: %s", n, reason)
	return strings.Trim(s.warning+"; "+text, "; ")
}

// add adds the next window.
func (s *windows) add(w *shard.Window) {
	s.stored, s.next, s.complete = w.Number+1, w.Next(s.next), w.Last
	if s.sound < 0 && len(w.Items) > 0 {
		s.sound = w.Number
	}
	if w.Changed != "" {
		s.warning = w.Changed
	}
	if w.Append.Command != "" {
		s.appends[w.Append.Command] = w.Append.First
	}
	s.noteFailures(w)
}

// follows reports whether a stored window is the next one.
func (s *windows) follows(w *shard.Window) bool {
	return w.Campaign == s.campaign && w.Number == s.stored && w.Item == s.next.Item
}

// create stores the next window and adds it. If the store has the window already, because a second coordinator leads, it adds the
// stored window, which may have other rows if the dataset has changed. It returns the window that it added.
func (s *windows) create(ctx context.Context, w *shard.Window) (added *shard.Window, err error) {
	data, err := w.Encode()
	if err != nil {
		return nil, err
	}
	err = s.store.Create(ctx, shard.Key(s.campaign, w.Number), data)
	if errors.Is(err, storage.ErrExists) {
		if w, err = s.read(ctx, w.Number); err != nil {
			return nil, err
		}
		if !s.follows(w) {
			return nil, fmt.Errorf("stored window %d does not follow the previous window", s.stored)
		}
	} else if err != nil {
		return nil, fmt.Errorf("store window %d: %w", w.Number, err)
	}
	s.add(w)
	return w, nil
}

// replace replaces a stored window by another one with the same rows.
func (s *windows) replace(ctx context.Context, w *shard.Window) error {
	data, err := w.Encode()
	if err != nil {
		return err
	}
	if err := s.store.Put(ctx, shard.Key(s.campaign, w.Number), data); err != nil {
		return fmt.Errorf("store window %d: %w", w.Number, err)
	}
	s.noteFailures(w)
	return nil
}

// read reads a window from storage.
func (s *windows) read(ctx context.Context, number int) (*shard.Window, error) {
	return shard.Read(ctx, s.store, shard.Key(s.campaign, number))
}

// first reads the first window with items.
func (s *windows) first(ctx context.Context) (*shard.Window, error) { return s.read(ctx, s.sound) }

// restore adds all windows in storage. It calls f with each.
func (s *windows) restore(ctx context.Context, f func(w *shard.Window)) error {
	for w, err := range shard.All(ctx, s.store, s.campaign) {
		if err != nil {
			return err
		}
		if !s.follows(w) {
			return fmt.Errorf("stored window %d does not follow the previous window; remove %s, so that the dataset is read again",
				s.stored, shard.Prefix(s.campaign))
		}
		s.add(w)
		f(w)
	}
	s.unverified = s.stored
	return nil
}

// errMissingWindows: windows are missing from storage. The campaign is opened again, and reads the dataset again.
var errMissingWindows = errors.New("windows are missing from the store")

// each calls f with the windows in order. It returns errMissingWindows if some are no longer in storage.
func (s *windows) each(ctx context.Context, f func(w *shard.Window) error) error {
	found := 0
	for w, err := range shard.All(ctx, s.store, s.campaign) {
		if err != nil {
			return err
		}
		if err := f(w); err != nil {
			return err
		}
		found++
	}
	if found < s.stored {
		return fmt.Errorf("%w: %d of %d", errMissingWindows, s.stored-found, s.stored)
	}
	return nil
}
