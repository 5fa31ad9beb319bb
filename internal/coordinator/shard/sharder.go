package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"ddiff/internal/record"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// sources reads the files of datasets.
type sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Rows streams a dataset from its beginning, as [manifest.Rows] does.
type Rows func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error]

// Config describes a sharder.
type Config struct {
	// Spec is a valid campaign. Required.
	Spec *manifest.Spec
	// Campaign is the campaign's id. Default: that of a campaign without an owner.
	Campaign string
	// Prior is the campaign's score model. Required.
	Prior *prior.Description
	// Sources reads the files that rows name. Required.
	Sources sources
	// Catalogue holds methods and operators. Default: the built-in ones.
	Catalogue manifest.Catalogue
	// Rows reads the dataset. Default: manifest.Rows.
	Rows Rows
	// Skipped is called for each file of the dataset that is not an image. Optional.
	Skipped func(manifest.Skip)
	// Keep selects the items of the campaign; the others are left out as if they were not in it. It sees the items of
	// unreadable rows too, which lack digests. Default: all.
	Keep func(it *item.Item) bool
	// Items is the approximate number of items of a window; rows are not divided. Default: 4096.
	Items int
	// First is the approximate number of items of the first window. Each next window has up to twice as many, at most
	// Items. Default: Items.
	First int
	// Parallel is the number of rows whose files are read at once. Default: 8.
	Parallel int
	// Wait is called in the goroutine of Windows when a source does not answer, or the dataset has changed so that reading
	// cannot resume. Default: the cause ends the windows.
	Wait Wait
	// Delay is the maximum wait before the second attempt at a row whose source answers for other rows, and half of the time between
	// two looks at a file that its server calls missing or that cannot be used. Default: 2 s.
	Delay time.Duration
	// Settle is the time between two looks at a local file that was modified within that time before the first. Default: no second look.
	Settle time.Duration
	// Stored yields the stored windows in order, for rows that are appended. Required by them only.
	Stored func(ctx context.Context) iter.Seq2[*Window, error]
	// Now is the clock of windows and failed results. Default: time.Now.
	Now func() time.Time
}

// Validate names the first field that is missing or out of range.
func (c Config) Validate() error {
	switch {
	case c.Spec == nil:
		return errors.New("Spec is missing")
	case c.Prior == nil:
		return errors.New("Prior is missing")
	case c.Spec.Precision == manifest.PrecisionAuto:
		return errors.New("Spec has the precision auto")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Items < 0:
		return fmt.Errorf("Items: %d is negative", c.Items)
	case c.First < 0:
		return fmt.Errorf("First: %d is negative", c.First)
	case c.Parallel < 0:
		return fmt.Errorf("Parallel: %d is negative", c.Parallel)
	case c.Delay < 0:
		return fmt.Errorf("Delay: %v is negative", c.Delay)
	case c.Settle < 0:
		return fmt.Errorf("Settle: %v is negative", c.Settle)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Campaign = cmp.Or(c.Campaign, c.Spec.ID(""))
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
	if c.Wait == nil {
		c.Wait = fail
	}
	if c.Delay == 0 {
		c.Delay = 2 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Sharder creates the windows of one campaign. Create it with New. One goroutine at a time may use it.
type Sharder struct {
	cfg     Config
	expand  *manifest.Expander
	witness witnesses
	// known are the rows of the windows before knownBefore, see before.
	known       map[filesKey]knownRows
	knownBefore int
	touched     []Touched
	counted     counted // see later
	// estimating lets one row at a time decode its measurement: many pictures of 12 megapixels take gigabytes.
	estimating sync.Mutex
}

// New validates the configuration and returns a sharder.
func New(cfg Config) (*Sharder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure sharder: %w", err)
	}
	cfg = cfg.withDefaults()
	expand := manifest.NewExpander(cfg.Spec, cfg.Prior.SHA256, memoize(cfg.Catalogue.Resolver(cfg.Prior)))
	expand.Campaign, expand.Known = cfg.Campaign, cfg.Catalogue
	var err error
	if expand.Tile, expand.Overlap, err = cfg.Spec.Tiles(cfg.Prior.Card.TileSide(), cfg.Prior.Card.MultipleOf); err != nil {
		return nil, fmt.Errorf("configure sharder: %w", err)
	}
	read := cfg.Rows
	cfg.Rows = func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for row, err := range read(ctx, d, skipped) {
				if err == nil {
					row = d.Complete(row)
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
	return &Sharder{cfg: cfg, expand: expand, witness: witnesses{paths: map[string]string{}}}, nil
}

// Windows yields the windows from a position on: the zero Position, or the Next of an earlier window. The last window of the
// dataset has Last set. An error of the dataset as a whole, or of ctx, is the last pair.
//
// If the rows before the position have changed, Windows resumes after the last of them that the dataset still has, and
// the next window describes the change (Header.Changed). The error is ErrMoved if there is no such row, or if rows were
// reordered or share their files. Config.Wait decides about it, about errors of the environment (IsUnavailable), and about a dataset that was
// there and is gone.
func (s *Sharder) Windows(ctx context.Context, from Position) iter.Seq2[*Window, error] {
	return func(yield func(*Window, error) bool) {
		p := pass{Sharder: s, at: from, wait: s.cfg.Wait, yield: func(w *Window) bool { return yield(w, nil) }}
		for {
			err := p.run(ctx)
			if mayReturn(err, p.at) {
				if err = s.cfg.Wait(ctx, err); err == nil {
					continue // from the start of the window
				}
			}
			if err != nil && !errors.Is(err, errStop) {
				yield(nil, err)
			}
			return
		}
	}
}

// errStop: the consumer of the windows has stopped.
var errStop = errors.New("stop")

// pass makes windows.
type pass struct {
	*Sharder
	at      Position
	wait    Wait
	changed string // for the next window
	yield   func(*Window) bool
}

// run reads the dataset from its beginning and makes the windows from p.at on, which it advances.
func (p *pass) run(ctx context.Context) error {
	var digest rowDigest
	var rows []manifest.Row
	items, listed := 0, 0
	for row, err := range p.rows(ctx, p.at.Append, p.cfg.Skipped) {
		if err != nil {
			return err // Rows adds action and path
		}
		if listed < p.at.Listed {
			digest.add(row)
			if listed++; listed == p.at.Listed && p.at.RowsSHA256 != digest.String() {
				return p.relocate(ctx)
			}
			continue
		}
		n := manifest.ItemsPerRow(row, p.cfg.Spec)
		if len(rows) > 0 && items+n > p.limit(p.at.Number) {
			if err := p.emit(ctx, rows, &digest, false); err != nil {
				return err
			}
			rows, items = rows[:0], 0
		}
		digest.add(row)
		listed++
		rows, items = append(rows, row), items+n
	}
	if listed < p.at.Listed {
		return p.relocate(ctx)
	}
	return p.emit(ctx, rows, &digest, true)
}

// emit makes and yields a window of rows.
func (p *pass) emit(ctx context.Context, rows []manifest.Row, digest *rowDigest, isLast bool) error {
	begin := p.cfg.Now().UTC() // a file that is modified from now on may have been read before
	w, err := p.window(ctx, p.at, rows, p.wait)
	if err != nil {
		return err
	}
	w.Listed, w.RowsSHA256, w.Read = p.at.Listed+len(rows), digest.String(), begin
	w.Changed, w.Last, w.Append = p.changed, isLast, p.at.Append
	p.at, p.changed = w.Next(p.at), ""
	if !p.yield(w) {
		return errStop
	}
	return nil
}

// relocate moves the position to its place in a dataset that has changed, and resumes there.
func (p *pass) relocate(ctx context.Context) error {
	a := newAnchor(p.at.tail)
	var digest, found rowDigest
	for row, err := range p.rows(ctx, p.at.Append, nil) {
		if err != nil {
			return err
		}
		digest.add(row)
		if a.add(row) {
			found.sum = digest.sum
		}
	}
	if a.at == p.at.Listed && found.String() == p.at.RowsSHA256 {
		return p.run(ctx) // the rows are back
	}
	since := p.at.Read.Format(time.RFC3339)
	if !a.found() {
		return fmt.Errorf("%w since %s, and the place after row %d cannot be found in it; restore the dataset, or cancel "+
			"this campaign and submit another", ErrMoved, since, p.at.Listed)
	}
	p.changed = fmt.Sprintf("the dataset changed since %s: rows may be missing or new; its first %d rows were read then, "+
		"the campaign continues after row %d, %q", since, p.at.Listed, a.at, a.name)
	p.at.Listed, p.at.RowsSHA256 = a.at, found.String()
	return p.run(ctx)
}

// limit is the approximate number of items of a window.
func (s *Sharder) limit(number int) int {
	n := s.cfg.First
	for ; number > 0 && n < s.cfg.Items; number-- {
		n *= 2
	}
	return min(n, s.cfg.Items)
}

// window reads the files of the rows and expands the rows into items.
func (s *Sharder) window(ctx context.Context, at Position, rows []manifest.Row, wait Wait) (*Window, error) {
	probes, err := s.readRows(ctx, rows, wait)
	if err != nil {
		return nil, err
	}
	w := &Window{Header: Header{
		Schema: record.Schema, Campaign: s.cfg.Campaign, Number: at.Number, Row: at.Row, Rows: len(rows), Item: at.Item,
	}}
	for i, row := range rows {
		first := at.Item + w.Header.Items
		items, results := s.expand.Expand(row, probes[i], first)
		sound, failed := s.keep(items, results, first)
		w.Header.Items += len(sound) + len(failed)
		w.Items = append(w.Items, sound...)
		for _, r := range failed {
			r.Finished = s.cfg.Now().UTC()
			w.Failed = append(w.Failed, r)
		}
	}
	SortTaskMajor(w.Items, s.cfg.Spec)
	return w, nil
}

// Class returns the queue class of an item: items of one class may share a batch.
func Class(it item.Item) string {
	return fmt.Sprintf("%s-%dx%d", it.Task, it.Width, it.Height)
}
