package aggregate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/internal/report/result"
	"ddiff/storage"
)

// KeyJSON is the key of a stored [Summary].
const KeyJSON = "summary.json"

// Unfinished is the number of planned items without an outcome, by the stored summaries of outputs. Another file of that
// name counts none.
func Unfinished(ctx context.Context, outputs []result.Output) (int, error) {
	missing := 0
	for _, o := range outputs {
		data, err := o.Store.Get(ctx, KeyJSON)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", o.Address, err)
		}
		var s Summary
		if json.Unmarshal(data, &s) == nil {
			missing += max(0, s.Missing())
		}
	}
	return missing, nil
}
