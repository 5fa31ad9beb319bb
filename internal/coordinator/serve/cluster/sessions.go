package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ddiff/internal/coordinator/serve"
	"ddiff/internal/queue"
)

// keySession + the key of a browser's session is that of its record on the board, which every coordinator of the cluster reads.
const keySession = "session."

// KeepSession implements [serve.Tokens].
func (c *Cluster) KeepSession(ctx context.Context, key string, data []byte, age time.Duration) error {
	token, _, _ := strings.Cut(key, ".")
	open, err := c.cfg.Board.Names(ctx, keySession+token+".")
	if err == nil && len(open) >= serve.MaxSessions {
		return serve.ErrSessions()
	}
	if err == nil {
		err = c.cfg.Board.CreateFor(ctx, keySession+key, data, age)
	}
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	return nil
}

// Session implements [serve.Tokens].
func (c *Cluster) Session(ctx context.Context, key string) ([]byte, error) {
	data, _, err := c.cfg.Board.Get(ctx, keySession+key)
	if errors.Is(err, queue.ErrNoRecord) {
		return nil, serve.ErrSession()
	}
	return data, err
}

// EndSession implements [serve.Tokens].
func (c *Cluster) EndSession(ctx context.Context, key string) error {
	return c.cfg.Board.Discard(ctx, keySession+key)
}
