package score

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/regular"
	"ddiff/internal/report/result"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/storage"
)

// Store is the store of an output.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte) error
	List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error]
}

// Config configures [Run].
type Config struct {
	// Address names the output in errors.
	Address string
	Store   Store
	Metrics []Metric
	// Filter selects results; nil selects all.
	Filter *result.Filter
	// Parallel is the number of items that are scored concurrently. Default: 1.
	Parallel int
	// PartSize is the number of scores after which a part is written. Default: 1024.
	PartSize int
	// Problem, if not nil, gets each item whose pictures cannot be scored. It is called by one goroutine at a time.
	Problem func(key string, err error)
	// Progress, if not nil, gets the number of items so far, likewise.
	Progress func(items int)
}

// Count has the outcome for one metric.
type Count struct {
	// Metric is the versioned id, SHA256 the digest of its network.
	Metric string `json:"metric"`
	SHA256 string `json:"sha256,omitempty"`
	// Items are the finished items: Scored now, Present from an earlier call, Skipped because the metric does not apply or
	// there is no truth, and Wrong with pictures that cannot be scored.
	Items   int `json:"items"`
	Scored  int `json:"scored"`
	Present int `json:"present"`
	Skipped int `json:"skipped"`
	Wrong   int `json:"wrong"`
	// Difference is the largest difference of a new score from the score of the same name in result.json, which a worker
	// computed before rounding. Nil without such scores.
	Difference *float64 `json:"max_difference,omitempty"`
}

// Add adds the counts of another output.
func (c *Count) Add(other Count) {
	c.Items += other.Items
	c.Scored += other.Scored
	c.Present += other.Present
	c.Skipped += other.Skipped
	c.Wrong += other.Wrong
	if other.Difference != nil {
		c.deviate(*other.Difference)
	}
}

func (c *Count) deviate(d float64) {
	if c.Difference == nil || d > *c.Difference {
		c.Difference = &d
	}
}

// Run computes the missing scores of an output, and returns one count for each metric. The scores so far are stored if an
// error or the end of ctx stops it: the next call computes the rest.
func Run(ctx context.Context, cfg Config) ([]Count, error) {
	s := &scorer{Config: cfg}
	for _, m := range cfg.Metrics {
		s.parts = append(s.parts, part{head: m.Head})
		s.counts = append(s.counts, Count{Metric: m.Head.Metric, SHA256: m.Head.SHA256})
	}
	err := s.run(ctx)
	// What was computed before an interruption is stored.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for i := range s.parts {
		err = errors.Join(err, s.parts[i].write(last, cfg.Store))
	}
	return s.counts, err
}

type scorer struct {
	Config
	mu     sync.Mutex
	items  int
	parts  []part
	counts []Count
}

func (s *scorer) run(ctx context.Context) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(max(1, s.Parallel))
	results := result.Results(inner, []result.Output{{Address: s.Address, Store: s.Store}})
	if s.Filter != nil {
		results = s.Filter.Select(results)
	}
	var failed error
	for r, err := range results {
		if err != nil {
			failed = err
			break
		}
		if r.Outcome != item.OutcomeDone {
			continue
		}
		missing := s.missing(&r)
		if len(missing) == 0 {
			continue
		}
		group.Go(func() error { return s.item(inner, &r, missing) })
	}
	// The error of a worker ends the results too.
	if err := group.Wait(); err != nil {
		return err
	}
	return failed
}

// missing counts the item and returns the metrics that it lacks.
func (s *scorer) missing(r *item.Result) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items++; s.Progress != nil {
		s.Progress(s.items)
	}
	present := make(map[string]bool)
	for _, score := range r.Scores {
		present[score.Metric] = true
	}
	var missing []int
	for i, m := range s.Metrics {
		s.counts[i].Items++
		switch {
		case present[m.Head.Metric]:
			s.counts[i].Present++
		case result.ScoredPictures(r) == "", m.Unclipped && r.Artifacts[item.FileUnclipped] == "":
			s.counts[i].Skipped++
		default:
			missing = append(missing, i)
		}
	}
	return missing
}

// item computes the missing scores of an item. A picture that cannot be used costs the metrics that need it.
func (s *scorer) item(ctx context.Context, r *item.Result, missing []int) error {
	pictures := map[string]*raster.Image{}
	for _, i := range missing {
		for _, file := range []string{item.FileTruth, s.Metrics[i].restored()} {
			if pictures[file] != nil {
				continue
			}
			img, err := s.picture(ctx, r, file)
			if truth := pictures[item.FileTruth]; err == nil && truth != nil { // a grey picture may be stored in another number
				img, err = raster.InChannels(img, truth.Channels)
			}
			if errors.Is(err, errPicture) || errors.Is(err, raster.ErrShape) {
				needs := func(i int) bool { return file == item.FileTruth || file == s.Metrics[i].restored() }
				others := slices.DeleteFunc(slices.Clone(missing), needs)
				s.wrong(item.Key(r.Item.ID, file), err, slices.DeleteFunc(missing, func(i int) bool { return !needs(i) }))
				return s.item(ctx, r, others)
			}
			if err != nil {
				return err
			}
			pictures[file] = img
		}
	}
	for _, i := range missing {
		row := item.Score{Item: r.Item.ID, Pictures: result.ScoredPictures(r)}
		file := s.Metrics[i].restored()
		v, err := s.Metrics[i].Compare(ctx, pictures[item.FileTruth], pictures[file])
		switch {
		case metric.Inapplicable(err):
			row.Reason = err.Error()
		case errors.Is(err, metric.ErrShape), errors.Is(err, raster.ErrNotFinite):
			s.wrong(item.Key(r.Item.ID, file), err, []int{i})
			continue
		case err != nil:
			return fmt.Errorf("score %s of item %s: %w", s.Metrics[i].Head.Metric, r.Item.Name, err)
		default:
			row.Value = &v
		}
		if err := s.store(ctx, r, i, row); err != nil {
			return err
		}
	}
	return nil
}

// errPicture: a picture cannot be used.
var errPicture = errors.New("picture")

// picture reads one picture of an item and checks its digest.
func (s *scorer) picture(ctx context.Context, r *item.Result, file string) (*raster.Image, error) {
	data, err := s.Store.Get(ctx, item.Key(r.Item.ID, file))
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrCorrupt), errors.Is(err, storage.ErrTooLarge):
		return nil, fmt.Errorf("%w: %w", errPicture, err)
	case err != nil:
		return nil, err
	}
	if got := regular.SHA256(data); got != r.Artifacts[file] {
		return nil, fmt.Errorf("%w has the SHA-256 %.12s, %s says %.12s", errPicture, got, item.FileResult, r.Artifacts[file])
	}
	img, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPicture, err)
	}
	return img, nil
}

// decode reads a picture, which has one channel if it is stored so, or an array [channels, rows, columns].
func decode(data []byte) (*raster.Image, error) {
	if !raster.IsNPY(data) {
		return raster.DecodeResult(data)
	}
	a, err := raster.DecodeNPY(data)
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 3 {
		return nil, fmt.Errorf("its shape is %v, want [channels, rows, columns]", a.Shape)
	}
	return &raster.Image{Channels: a.Shape[0], Height: a.Shape[1], Width: a.Shape[2], Pix: a.Data}, nil
}

// wrong counts an item that cannot be scored.
func (s *scorer) wrong(key string, err error, missing []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range missing {
		s.counts[i].Wrong++
	}
	if s.Problem != nil {
		s.Problem(key, err)
	}
}

// store adds a score to its part, and writes a full part.
func (s *scorer) store(ctx context.Context, r *item.Result, i int, row item.Score) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[i].rows = append(s.parts[i].rows, row)
	if row.Value == nil {
		s.counts[i].Skipped++
	} else {
		s.counts[i].Scored++
		if own := r.Metrics.Of(metric.NameOf(s.Metrics[i].Head.Metric)); !math.IsNaN(own) && !s.Metrics[i].Unclipped {
			s.counts[i].deviate(math.Abs(own - *row.Value))
		}
	}
	if len(s.parts[i].rows) < cmp.Or(s.PartSize, partSize) {
		return nil
	}
	return s.parts[i].write(ctx, s.Store)
}
