package enginecache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/restore/operator"
)

// keptOperators is the number of operator files that a Cache keeps in memory without a user.
const keptOperators = 4

// Operators returns the operators of a campaign by their digests. It runs each file once before its first use, see
// [operator.File.Verify]. The error is ErrOperatorFile for a file that cannot be used.
func (c *Cache) Operators(ctx context.Context, files []record.OperatorFile) (map[string]*operator.File, error) {
	c.loading.Lock()
	defer c.loading.Unlock()
	out := map[string]*operator.File{}
	for _, from := range files {
		i := slices.IndexFunc(c.operators, func(f *operator.File) bool { return f.SHA256 == from.SHA256 })
		if i < 0 {
			f, err := c.loadOperator(ctx, from)
			if err != nil {
				return nil, err
			}
			i = len(c.operators)
			c.operators = append(c.operators, f)
		}
		f := c.operators[i]
		c.operators = append(slices.Delete(c.operators, i, i+1), f)
		out[f.SHA256] = f
	}
	c.operators = slices.Clone(c.operators[max(0, len(c.operators)-max(keptOperators, len(files))):])
	return out, nil
}

// loadOperator reads, parses and verifies an operator file.
func (c *Cache) loadOperator(ctx context.Context, from record.OperatorFile) (*operator.File, error) {
	data, err := c.fetch(ctx, "operator", ErrOperatorFile, from.Key, from.SHA256)
	if err != nil {
		return nil, err
	}
	f, err := operator.Load(redact.Address(from.Path), data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOperatorFile, err)
	}
	if err := f.Verify(ctx, c.cfg.Runtime); errors.Is(err, operator.ErrFile) {
		return nil, fmt.Errorf("%w: %w", ErrOperatorFile, err)
	} else if err != nil {
		return nil, err
	}
	c.cfg.Logger.Info("opened operator", "operator", f.Path, "sha256", from.SHA256[:12])
	return f, nil
}
