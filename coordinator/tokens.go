package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ddiff/coordinator/board"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// revokedKey is the key in the store that remembers the revocation of a token, of which key is that on the board.
func revokedKey(key string) string {
	return "coordinators/revoked/" + strings.TrimPrefix(key, manifest.KeyTokenPrefix)
}

// keepTokens logs the creations and revocations of tokens until ctx ends, and removes revoked tokens. The store remembers these: a board that
// was restored from a backup gives nobody access again.
func (s *Service) keepTokens(ctx context.Context) error {
	for change, err := range s.cfg.Board.WatchClosely(ctx, manifest.KeyTokenPrefix) {
		if err != nil {
			return fmt.Errorf("watch tokens: %w", err)
		}
		if change.Ready || change.Deleted {
			continue
		}
		for {
			err := s.keepToken(ctx, change)
			if err == nil || ctx.Err() != nil {
				break
			}
			s.cfg.Logger.Warn("could not note a token, will retry", "reason", err)
			_ = retry.Sleep(ctx, s.cfg.Restart) // the next attempt checks ctx
		}
	}
	return nil
}

// keepToken handles the record of a token.
func (s *Service) keepToken(ctx context.Context, change queue.Change) error {
	var t manifest.Token
	var fields map[string]json.RawMessage
	if json.Unmarshal(change.Data, &t) != nil || json.Unmarshal(change.Data, &fields) != nil {
		return nil //nolint:nilerr // a damaged record gives nobody access
	}
	_, err := s.cfg.Store.Stat(ctx, revokedKey(change.Key))
	known := err == nil
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if t.Ask != nil && !known {
		board.LogAsk(s.cfg.Logger, *t.Ask, "token", t.ID, "token_owner", t.Owner, "token_role", t.Role)
	}
	switch {
	case known || t.Revoked:
		if !t.Revoked {
			s.cfg.Logger.Warn("the board had a revoked token", "token", t.ID, "token_owner", t.Owner)
		}
		if !known {
			if err := s.cfg.Store.Put(ctx, revokedKey(change.Key), append(change.Data, '\n')); err != nil {
				return err
			}
		}
		err = s.cfg.Board.DeleteAt(ctx, change.Key, change.Revision)
	case t.Ask != nil:
		delete(fields, "ask")
		var data []byte
		if data, err = json.Marshal(fields); err == nil {
			_, err = s.cfg.Board.Update(ctx, change.Key, data, change.Revision)
		}
	default:
		return nil
	}
	return board.IgnoreConflict(err) // the newer record comes next
}
