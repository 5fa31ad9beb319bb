package results

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"ddiff/api"
	"ddiff/restore/item"
	"ddiff/storage"
)

// remote is the output of a campaign behind the HTTP API. It has the files of done items only.
type remote struct {
	client   *api.Client
	campaign string
}

// Get implements source.
func (r remote) Get(ctx context.Context, key string) ([]byte, error) {
	id, name, ok := strings.Cut(strings.TrimPrefix(key, item.ItemsFolder), "/")
	if !ok {
		return nil, fmt.Errorf("%w: %s", storage.ErrNotFound, key)
	}
	data, err := r.client.File(ctx, r.campaign, id, name)
	if errors.Is(err, api.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", storage.ErrNotFound, key)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return data, nil
}

// List implements source. It yields result.json of each done item once, in the order of the dataset, and nothing for other prefixes than that of
// items. Several rows may have one item.
func (r remote) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if prefix != item.ItemsFolder {
			return
		}
		seen := map[string]bool{}
		q := api.ItemQuery{State: api.StateDone, Limit: 1000}
		for {
			page, err := r.client.Items(ctx, r.campaign, q)
			if err != nil {
				yield(storage.Info{}, err)
				return
			}
			for _, it := range page.Items {
				if seen[it.ID] {
					continue
				}
				seen[it.ID] = true
				if !yield(storage.Info{Key: item.Key(it.ID, item.FileResult)}, nil) {
					return
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}
