package board

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/storage"
)

// Writer has the records of campaigns as one leader knows them in its term. A change is a state in the store, of which each number is created
// once: a leader that was suspended, or another one, learns there of what was decided meanwhile and decides again. Its methods may be called
// concurrently.
type Writer struct {
	board *queue.Board
	store storage.Store
	mu    sync.Mutex
	byID  map[string]*known
}

// known is the newest record of a campaign that the process has read from the store or written.
type known struct {
	turn      sync.Mutex // of changes
	submitted int64
	number    int
	digest    [sha256.Size]byte
}

// digestOf tells records apart: one of the board with a number may have another content than the store's.
func digestOf(c *record.Campaign) [sha256.Size]byte {
	data, _ := json.Marshal(c) // of a decoded record
	return sha256.Sum256(data)
}

// NewWriter returns the writer of a new term.
func NewWriter(b *queue.Board, s storage.Store) *Writer {
	return &Writer{board: b, store: s, byID: map[string]*known{}}
}

func (w *Writer) of(id string) *known {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.byID[id]
	if k == nil {
		k = &known{number: -1}
		w.byID[id] = k
	}
	return k
}

// note notes that the store has a record, and no newer one yet.
func (w *Writer) note(c *record.Campaign) {
	k, digest := w.of(c.ID), digestOf(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := c.Submitted.UnixNano(); at != k.submitted || c.Number > k.number {
		k.submitted, k.number, k.digest = at, c.Number, digest
	}
}

// Forget forgets a campaign that was deleted.
func (w *Writer) Forget(id string) {
	k := w.of(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	k.submitted, k.number = 0, -1
}

// Number returns the number of the newest state of a campaign that is known, -1 for none.
func (w *Writer) Number(id string) int {
	k := w.of(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	return k.number
}

// Current reports whether a record is the newest one that is known.
func (w *Writer) Current(c *record.Campaign) bool {
	k, digest := w.of(c.ID), digestOf(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	return k.number == c.Number && k.submitted == c.Submitted.UnixNano() && k.digest == digest
}

// Trust notes a record of the board whose copy in the store is damaged.
func (w *Writer) Trust(c *record.Campaign) { w.note(c) }

// Newest reads the record of a campaign from the store.
func (w *Writer) Newest(ctx context.Context, id string) (*record.Campaign, error) {
	c, err := Load(ctx, w.store, id)
	if err == nil {
		w.note(c)
	}
	return c, err
}

// Create stores what was submitted, or the record of the board for a store that has lost it, and then writes the board. The error is
// storage.ErrExists if the store has a campaign with the id.
func (w *Writer) Create(ctx context.Context, c *record.Campaign) error {
	data, err := json.Marshal(c)
	if err == nil && len(data) > queue.MaxRecordBytes {
		err = fmt.Errorf("%w: %d bytes, the limit is %d", queue.ErrTooLarge, len(data), queue.MaxRecordBytes)
	}
	if err == nil {
		err = w.store.Create(ctx, StoredKey(c.ID), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("store the record of campaign %s: %w", c.ID, err)
	}
	w.note(c)
	return w.Publish(ctx, c)
}

// Change applies a change to the record of a campaign: to before, or to a newer one. The store has the next state before the board. It returns
// the newest record, also without a change: if change returns ErrUnchanged, or leaves the record as it is. Another error of change is returned.
func (w *Writer) Change(ctx context.Context, id string, before *record.Campaign, change func(c *record.Campaign) error) (*record.Campaign, error) {
	turn := &w.of(id).turn
	turn.Lock()
	defer turn.Unlock()
	c, read, err := w.begin(ctx, id, before)
	for err == nil {
		next := copied(c)
		changed, failed := w.apply(next, c, change)
		switch {
		case changed:
		case !read: // another leader may have decided since
			c, err = w.Newest(ctx, id)
			read = true
			continue
		case failed != nil:
			return c, failed
		default:
			return c, w.Publish(ctx, c)
		}
		err = w.createState(ctx, next)
		if err == nil {
			w.note(next)
			return next, w.Publish(ctx, next)
		}
		if errors.Is(err, storage.ErrExists) {
			if c, err = loadState(ctx, w.store, c, stateKey(next)); err == nil {
				w.note(c)
			}
		}
	}
	return nil, fmt.Errorf("change campaign %s: %w", id, err)
}

// begin returns the record that a change begins with, and whether it was read from the store just now.
func (w *Writer) begin(ctx context.Context, id string, before *record.Campaign) (c *record.Campaign, read bool, err error) {
	if before != nil && w.Current(before) {
		return before, false, nil
	}
	if c, err := Read(ctx, w.board, id); err == nil && w.Current(c) {
		return c, false, nil
	}
	c, err = w.Newest(ctx, id)
	return c, true, err
}

// apply applies a change to next, a copy of c, gives it its number, and reports whether it differs.
func (w *Writer) apply(next, c *record.Campaign, change func(c *record.Campaign) error) (changed bool, err error) {
	if err := change(next); errors.Is(err, ErrUnchanged) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	x, err := encodeState(c)
	y, err2 := encodeState(next)
	next.Number = c.Number + 1
	return !bytes.Equal(x, y), errors.Join(err, err2)
}

// copied is a copy of a record of which a change replaces no part of the original.
func copied(c *record.Campaign) *record.Campaign {
	next := *c
	if c.Start != nil {
		start := *c.Start
		next.Start = &start
	}
	return &next
}

func (w *Writer) createState(ctx context.Context, c *record.Campaign) error {
	data, err := encodeState(c)
	if err == nil {
		err = w.store.Create(ctx, stateKey(c), data)
	}
	return err
}

// Publish writes a record to the board, unless it has the record or a newer one.
func (w *Writer) Publish(ctx context.Context, c *record.Campaign) error {
	return w.publish(ctx, c, func(now *record.Campaign) bool { return now.Number >= c.Number })
}

// Replace writes the newest record to the board, whatever the board has.
func (w *Writer) Replace(ctx context.Context, c *record.Campaign) error {
	return w.publish(ctx, c, w.Current)
}

// publish writes a record to the board, unless keeps reports that its record of the same submission stays.
func (w *Writer) publish(ctx context.Context, c *record.Campaign, keeps func(now *record.Campaign) bool) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("publish campaign %s: %w", c.ID, err)
	}
	key := record.KeyCampaignPrefix + c.ID
	for {
		now, revision, err := ReadRevision(ctx, w.board, c.ID)
		switch {
		case errors.Is(err, queue.ErrNoRecord):
			_, err = w.board.Create(ctx, key, data)
		case err == nil && (now.Submitted.After(c.Submitted) || now.Submitted.Equal(c.Submitted) && keeps(now)):
			return nil
		case err == nil || errors.Is(err, ErrDamaged):
			_, err = w.board.Update(ctx, key, data, revision)
		}
		if !errors.Is(err, queue.ErrConflict) && !errors.Is(err, queue.ErrRecordExists) {
			return err
		}
	}
}

// Repair gives the newest record of a campaign to a board that has another one, and returns it.
func (w *Writer) Repair(ctx context.Context, id string) (*record.Campaign, error) {
	if c, err := Read(ctx, w.board, id); err == nil && w.Current(c) {
		return c, nil
	}
	c, err := w.Newest(ctx, id)
	if err == nil {
		err = w.Replace(ctx, c)
	}
	return c, err
}
