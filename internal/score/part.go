package score

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// partSize is the default of Config.PartSize.
const partSize = 1024

// part collects scores of one metric.
type part struct {
	head result.ScoreHead
	rows []item.Score
}

// write stores the part under a name that follows from its bytes, and empties it.
func (p *part) write(ctx context.Context, store Store) error {
	if len(p.rows) == 0 {
		return nil
	}
	slices.SortFunc(p.rows, func(a, b item.Score) int { return strings.Compare(a.Item, b.Item) })
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	if err := encoder.Encode(p.head); err != nil {
		return fmt.Errorf("encode scores: %w", err)
	}
	for _, row := range p.rows {
		if err := encoder.Encode(row); err != nil {
			return fmt.Errorf("encode score of item %s: %w", row.Item, err)
		}
	}
	key := result.ScoresFolder + result.ScoreFolderName(p.head.Metric) + "/" + result.ScorePartName(out.Bytes())
	if err := store.Put(ctx, key, out.Bytes()); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	p.rows = p.rows[:0]
	return nil
}
