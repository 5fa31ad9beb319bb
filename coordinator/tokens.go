package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
)

// createToken stores a token.
func (s *Service) createToken(ctx context.Context, v *board.Verb) (any, error) {
	var t board.Token
	if err := decodeBody(v, &t); err != nil {
		return nil, err
	}
	t.Secret = "" // never that
	data, err := json.Marshal(t)
	if err == nil {
		err = s.cfg.Store.Create(ctx, board.TokenFolder+t.SHA256+".json", data)
	}
	if errors.Is(err, storage.ErrExists) { // of the same verb
		err = nil
	}
	if err == nil {
		err = s.cfg.Board.Put(ctx, record.KeyTokenPrefix+t.SHA256, data)
	}
	if err != nil {
		return nil, fmt.Errorf("create a token: %w", err)
	}
	s.audit(v, "token", t.ID, "token_owner", t.Owner, "token_role", t.Role)
	return t.Token, nil
}

// revokeToken ends the token with an id: first in the store, so that no backup of the board undoes it.
func (s *Service) revokeToken(ctx context.Context, v *board.Verb) (any, error) {
	var id string
	if err := decodeBody(v, &id); err != nil {
		return nil, err
	}
	sum := ""
	for info, err := range s.cfg.Store.List(ctx, board.TokenFolder+id) {
		if err != nil {
			return nil, fmt.Errorf("revoke token %s: %w", id, err)
		}
		sum = strings.TrimSuffix(strings.TrimPrefix(info.Key, board.TokenFolder), ".json")
	}
	err := storage.ErrExists
	if sum != "" {
		err = s.cfg.Store.Create(ctx, board.RevokedFolder+sum, nil)
	}
	if errors.Is(err, storage.ErrExists) {
		return nil, api.NewError(api.ErrNotFound, fmt.Sprintf("no token has the id %s; see: ddiff token list", id))
	}
	if err == nil {
		err = s.cfg.Board.Delete(ctx, record.KeyTokenPrefix+sum)
	}
	if err != nil {
		return nil, fmt.Errorf("revoke token %s: %w", id, err)
	}
	s.audit(v, "token", id)
	return nil, nil
}

// keepTokens gives the board the tokens of the store every interval until ctx ends: it may have lost some, or a backup has returned revoked ones.
func (s *Service) keepTokens(ctx context.Context, interval time.Duration) error {
	for ctx.Err() == nil {
		if err := s.repairTokens(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("could not compare the tokens of the board with the store, will retry", "reason", err)
		}
		_ = retry.Sleep(ctx, interval) // the loop checks ctx
	}
	return nil
}

func (s *Service) repairTokens(ctx context.Context) error {
	onBoard, err := s.cfg.Board.Keys(ctx, record.KeyTokenPrefix)
	if err != nil {
		return err
	}
	has := func(sum string) bool {
		_, found := slices.BinarySearch(onBoard, record.KeyTokenPrefix+sum)
		return found
	}
	revoked := map[string]bool{}
	for info, err := range s.cfg.Store.List(ctx, board.RevokedFolder) {
		if err != nil {
			return err
		}
		sum := strings.TrimPrefix(info.Key, board.RevokedFolder)
		if revoked[sum] = true; has(sum) {
			s.cfg.Logger.Warn("the board had a revoked token", "token", sum[:min(len(sum), 12)])
			if err := s.cfg.Board.Delete(ctx, record.KeyTokenPrefix+sum); err != nil {
				return err
			}
		}
	}
	for info, err := range s.cfg.Store.List(ctx, board.TokenFolder) {
		if err != nil {
			return err
		}
		sum := strings.TrimSuffix(strings.TrimPrefix(info.Key, board.TokenFolder), ".json")
		if revoked[sum] || has(sum) {
			continue
		}
		data, err := s.cfg.Store.Get(ctx, info.Key)
		if err == nil {
			_, err = s.cfg.Board.Create(ctx, record.KeyTokenPrefix+sum, data)
		}
		if err != nil && !errors.Is(err, queue.ErrRecordExists) {
			return err
		}
	}
	return nil
}
