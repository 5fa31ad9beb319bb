package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/coordinator/board"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// revokedFolder is the folder of the store with an object for each revoked token.
const revokedFolder = "coordinators/revoked/"

// revokedKey is the key in the store that remembers the revocation of a token, of which key is that on the board.
func revokedKey(key string) string {
	return revokedFolder + strings.TrimPrefix(key, manifest.KeyTokenPrefix)
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
			_, err := s.cfg.Store.Stat(ctx, revokedKey(change.Key))
			if known := err == nil; known || errors.Is(err, storage.ErrNotFound) {
				err = s.keepToken(ctx, change, known)
			}
			if err == nil || ctx.Err() != nil {
				break
			}
			s.cfg.Logger.Warn("could not note a token, will retry", "reason", err)
			_ = retry.Sleep(ctx, s.cfg.Restart) // the next attempt checks ctx
		}
	}
	return nil
}

// reviseTokens lists the revocations in the store every interval until ctx ends, and removes their tokens from the board: a token that a
// backup has returned does not stay because the store did not find its revocation once.
func (s *Service) reviseTokens(ctx context.Context, interval time.Duration) error {
	for retry.Sleep(ctx, interval) == nil {
		if err := s.reviseTokensOnce(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("could not compare the tokens with their revocations, will retry", "reason", err)
		}
	}
	return nil
}

func (s *Service) reviseTokensOnce(ctx context.Context) error {
	tokens, err := s.cfg.Board.Names(ctx, manifest.KeyTokenPrefix)
	if err != nil || len(tokens) == 0 {
		return err
	}
	for info, err := range s.cfg.Store.List(ctx, revokedFolder) {
		if err != nil {
			return err
		}
		key := manifest.KeyTokenPrefix + strings.TrimPrefix(info.Key, revokedFolder)
		if _, found := slices.BinarySearch(tokens, key); !found {
			continue
		}
		data, revision, err := s.cfg.Board.Get(ctx, key)
		if err == nil {
			err = s.keepToken(ctx, queue.Change{Key: key, Data: data, Revision: revision}, true)
		}
		if err != nil && !errors.Is(err, queue.ErrNoRecord) {
			return err
		}
	}
	return nil
}

// keepToken handles the record of a token; known: the store has its revocation.
func (s *Service) keepToken(ctx context.Context, change queue.Change, known bool) (err error) {
	var t manifest.Token
	var fields map[string]json.RawMessage
	if json.Unmarshal(change.Data, &t) != nil || json.Unmarshal(change.Data, &fields) != nil {
		return nil //nolint:nilerr // a damaged record gives nobody access
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
