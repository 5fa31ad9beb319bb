package board

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
)

// confirmPause is the least time between two writes of a Confirmer: people may ask for unknown campaigns as often as they like.
const confirmPause = 100 * time.Millisecond

// keyConfirm never has a record: a Confirmer deletes it. Whoever may write campaigns may write it, and no id of one begins with its underscore.
const keyConfirm = manifest.KeyCampaignPrefix + "_confirm"

// Confirmer confirms that records are missing. A NATS server that is cut off from the others misses what was written since, and answers
// reads and conditional writes with wrong conditions for some seconds. It cannot complete a write.
type Confirmer struct {
	board *queue.Board
	begun atomic.Int64        // the number of the newest write
	turn  *semaphore.Weighted // protects the rest
	done  int64               // the newest write that succeeded
	last  time.Time           // its or a failed write's begin
}

// NewConfirmer returns a confirmer for a board.
func NewConfirmer(b *queue.Board) *Confirmer {
	return &Confirmer{board: b, turn: semaphore.NewWeighted(1)}
}

// Look calls look, and if it returns queue.ErrNoRecord, again after a write to the board. Calls that wait at the same time share a write. The
// error of a failed write is not queue.ErrNoRecord.
func (c *Confirmer) Look(ctx context.Context, look func() error) error {
	err := look()
	if !errors.Is(err, queue.ErrNoRecord) {
		return err
	}
	if err := c.write(ctx); err != nil {
		return fmt.Errorf("confirm that a record is missing: %w", err)
	}
	return look()
}

// write returns after a write that began after the call.
func (c *Confirmer) write(ctx context.Context) error {
	before := c.begun.Load()
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.turn.Release(1)
	if c.done > before {
		return nil
	}
	if err := retry.Sleep(ctx, confirmPause-time.Since(c.last)); err != nil {
		return err
	}
	number := c.begun.Add(1)
	c.last = time.Now()
	err := c.board.Delete(ctx, keyConfirm)
	if err == nil {
		c.done = number
	}
	return err
}
