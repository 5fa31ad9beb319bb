package shard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/manifest"
	"ddiff/restore/prior"
)

// sources reads the files of datasets.
type sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Rows streams a dataset from its beginning, as [manifest.Rows] does.
type Rows func(ctx context.Context, d manifest.Dataset, skipped func(path string)) iter.Seq2[manifest.Row, error]

// Config describes a sharder.
type Config struct {
	// Spec is a valid campaign. Required.
	Spec *manifest.Spec
	// Prior is the campaign's score model. Required.
	Prior *prior.Description
	// Sources reads the files that rows name. Required.
	Sources sources
	// Catalogue holds methods and operators. Default: the built-in ones.
	Catalogue Catalogue
	// Rows reads the dataset. Default: manifest.Rows.
	Rows Rows
	// Skipped is called for each file of the dataset that is not an image. Optional.
	Skipped func(path string)
	// Items is the approximate number of items of a window; rows are not divided. Default: 4096.
	Items int
	// First is the approximate number of items of the first window. Each next window has up to twice as many, at most
	// Items. Default: Items.
	First int
	// Parallel is the number of rows whose files are read at once. Default: 8.
	Parallel int
	// Now is the clock of failed results. Default: time.Now.
	Now func() time.Time
}

// Validate names the first field that is missing or out of range.
func (c Config) Validate() error {
	switch {
	case c.Spec == nil:
		return errors.New("Spec is missing")
	case c.Prior == nil:
		return errors.New("Prior is missing")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Items < 0:
		return fmt.Errorf("Items: %d is negative", c.Items)
	case c.First < 0:
		return fmt.Errorf("First: %d is negative", c.First)
	case c.Parallel < 0:
		return fmt.Errorf("Parallel: %d is negative", c.Parallel)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Rows == nil {
		c.Rows = manifest.Rows
	}
	if c.Items == 0 {
		c.Items = 4096
	}
	if c.First == 0 {
		c.First = c.Items
	}
	if c.Parallel == 0 {
		c.Parallel = 8
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Sharder creates the windows of one campaign. Create it with New. One goroutine at a time may use it.
type Sharder struct {
	cfg    Config
	expand *manifest.Expander
}

// New validates the configuration and returns a sharder.
func New(cfg Config) (*Sharder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure sharder: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Sharder{cfg: cfg, expand: manifest.NewExpander(cfg.Spec, cfg.Prior.SHA256, memoize(cfg.Catalogue.resolver(cfg.Spec.Preset, cfg.Prior)))}, nil
}

// Position is the start of a window: its number, and the numbers of rows and items before it.
type Position struct {
	Number, Row, Item int
}

// Windows yields the windows from a position on: the zero Position, or the Next of an earlier window. The last window of the
// dataset has Last set. An error of the dataset as a whole, or of ctx, is the last pair.
func (s *Sharder) Windows(ctx context.Context, from Position) iter.Seq2[*Window, error] {
	return func(yield func(*Window, error) bool) {
		err := s.windows(ctx, from, func(w *Window) bool { return yield(w, nil) })
		if err != nil {
			yield(nil, err)
		}
	}
}

// windows calls yield with each window until it returns false.
func (s *Sharder) windows(ctx context.Context, at Position, yield func(*Window) bool) error {
	var rows []manifest.Row
	items, seen := 0, 0
	for row, err := range s.cfg.Rows(ctx, s.cfg.Spec.Dataset, s.cfg.Skipped) {
		if err != nil {
			return err // Rows adds action and path
		}
		if seen++; seen <= at.Row {
			continue
		}
		n := manifest.ItemsPerRow(row, s.cfg.Spec)
		if len(rows) > 0 && items+n > s.limit(at.Number) {
			w, err := s.window(ctx, at, rows)
			if err != nil {
				return err
			}
			at = w.Next()
			if !yield(w) {
				return nil
			}
			rows, items = rows[:0], 0
		}
		rows, items = append(rows, row), items+n
	}
	w, err := s.window(ctx, at, rows)
	if err != nil {
		return err
	}
	w.Last = true
	yield(w)
	return nil
}

// limit is the approximate number of items of a window.
func (s *Sharder) limit(number int) int {
	n := s.cfg.First
	for ; number > 0 && n < s.cfg.Items; number-- {
		n *= 2
	}
	return min(n, s.cfg.Items)
}

// Again reads the rows of a window again. Rows that were repaired get items. It returns an error if the dataset now has fewer
// rows.
func (s *Sharder) Again(ctx context.Context, h Header) (*Window, error) {
	var rows []manifest.Row
	seen := 0
	for row, err := range s.cfg.Rows(ctx, s.cfg.Spec.Dataset, nil) {
		if err != nil {
			return nil, err // Rows adds action and path
		}
		if seen++; seen <= h.Row {
			continue
		}
		if rows = append(rows, row); len(rows) == h.Rows {
			break
		}
	}
	if len(rows) != h.Rows {
		return nil, fmt.Errorf("read dataset: it has %d rows, it had %d; submit it as a new campaign", seen, h.Row+h.Rows)
	}
	w, err := s.window(ctx, Position{h.Number, h.Row, h.Item}, rows)
	if err != nil {
		return nil, err
	}
	if got := len(w.Items) + len(w.Failed); got != h.Items {
		return nil, fmt.Errorf("read dataset: rows %d to %d have %d items, they had %d; submit it as a new campaign",
			h.Row+1, h.Row+h.Rows, got, h.Items)
	}
	w.Last = h.Last
	return w, nil
}

// window probes the rows and expands them into items.
func (s *Sharder) window(ctx context.Context, at Position, rows []manifest.Row) (*Window, error) {
	probes := make([]manifest.Probe, len(rows))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(s.cfg.Parallel)
	for i := range rows {
		row := &rows[i]
		if row.Err != nil || s.hinted(row, &probes[i]) {
			continue
		}
		group.Go(func() error {
			probes[i], row.Err = s.probe(inner, *row)
			return inner.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &Window{Header: Header{
		Schema: manifest.RecordSchema, Campaign: s.cfg.Spec.ID(), Number: at.Number, Row: at.Row, Rows: len(rows), Item: at.Item,
	}}
	for i, row := range rows {
		sound, failed := s.expand.Expand(row, probes[i], at.Item+w.Header.Items)
		w.Header.Items += len(sound) + len(failed)
		w.Items = append(w.Items, sound...)
		for _, r := range failed {
			r.Finished = s.cfg.Now().UTC()
			w.Failed = append(w.Failed, r)
		}
	}
	manifest.SortTaskMajor(w.Items, s.cfg.Spec)
	return w, nil
}

// Class returns the queue class of an item: items of one class may share a batch.
func Class(it manifest.Item) string {
	return fmt.Sprintf("%s-%dx%d", it.Task, it.Width, it.Height)
}
