package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"
)

// spread is the median of a sample, with its lowest and highest value.
type spread struct{ median, low, high float64 }

// spreadOf returns the spread of a sample, which must not be empty. The median of an even number is the lower one.
func spreadOf(sample []float64) spread {
	s := slices.Sorted(slices.Values(sample))
	return spread{s[(len(s)-1)/2], s[0], s[len(s)-1]}
}

// setting is a task, or a variant of PyTorch, with a batch size.
type setting struct {
	name  string
	batch int
}

// benchResults are the measurements of all rounds.
type benchResults struct {
	settings []setting // tasks, in the order of measurement
	timings  map[setting][]timing
	variants []setting             // in the order of measurement
	torch    map[setting][]float64 // milliseconds per step
}

// measure runs the rounds, as many as the limit allows. With an error, the results are those of the complete rounds. Each round measures every setting once; after the first task of a
// batch size it measures the variants of PyTorch that run has for this size, so that both sides see the same load of the
// machine.
func (o benchOptions) measure(ctx context.Context, dir string, photos []string, torch *torchProcess, stderr io.Writer) (benchResults, error) {
	r := benchResults{timings: map[setting][]timing{}, torch: map[setting][]float64{}}
	var run map[int][]string
	if torch != nil {
		var err error
		if run, err = torch.prepare(o.batches, o.tasks[0], o.compile); err != nil {
			return r, err
		}
	}
	for _, n := range o.batches {
		for _, task := range o.tasks {
			r.settings = append(r.settings, setting{task, n})
		}
		for _, name := range run[n] {
			r.variants = append(r.variants, setting{name, n})
		}
	}
	err := o.withStations(ctx, filepath.Join(dir, "out"), photos, r.settings, stderr, func(stations []*station) error {
		start, longest := time.Now(), time.Duration(0)
		for round := range o.rounds {
			if o.over(round, time.Since(start), longest) {
				break
			}
			begin := time.Now()
			if err := o.measureRound(ctx, &r, stations, round, photos, torch, run); err != nil {
				r.keep(round)
				return err
			}
			longest = max(longest, time.Since(begin))
		}
		return nil
	})
	return r, err
}

// measureRound measures every setting once.
func (o benchOptions) measureRound(ctx context.Context, r *benchResults, stations []*station, round int, photos []string, torch *torchProcess, run map[int][]string) error {
	for i, s := range stations {
		compared := s.name == o.tasks[0] && torch != nil
		t, err := o.timeCampaign(ctx, s, photos, round*len(stations)+i, compared)
		if err != nil {
			return fmt.Errorf("bench %s with batch %d: %w", s.name, s.batch, err)
		}
		r.timings[s.setting] = append(r.timings[s.setting], t)
		if !compared {
			continue
		}
		for _, variant := range run[s.batch] {
			ms, err := torch.step(torchRequest{variant, s.name, s.batch, max(o.steps/4, 3)})
			if err != nil {
				return err
			}
			v := setting{variant, s.batch}
			r.torch[v] = append(r.torch[v], ms)
		}
	}
	return nil
}

// keep removes the measurements of an incomplete round after some complete ones.
func (r benchResults) keep(rounds int) {
	for s, all := range r.timings {
		r.timings[s] = all[:rounds]
	}
	for v, all := range r.torch {
		r.torch[v] = all[:rounds]
	}
}

// complete reports whether a round was.
func (r benchResults) complete() bool {
	return len(r.settings) > 0 && len(r.timings[r.settings[0]]) > 0
}

// over reports whether a round would end after the limit. The first one always runs.
func (o benchOptions) over(round int, elapsed, longest time.Duration) bool {
	return o.limit > 0 && round > 0 && elapsed+longest > o.limit
}

// of returns the spread of a value over the rounds of a task.
func (r benchResults) of(s setting, value func(t timing) float64) spread {
	var sample []float64
	for _, t := range r.timings[s] {
		sample = append(sample, value(t))
	}
	return spreadOf(sample)
}

// lowestShare returns the lowest median share among the light tasks, or among the others; false without any.
func (r benchResults) lowestShare(light bool) (float64, bool) {
	lowest, found := 0.0, false
	for _, s := range r.settings {
		if slices.Contains(lightTasks, s.name) != light {
			continue
		}
		if share := r.of(s, timing.share).median; !found || share < lowest {
			lowest, found = share, true
		}
	}
	return lowest, found
}

// ratios returns the spread of PyTorch's time to that of our solver in the same round. Above 1, PyTorch is slower.
func (r benchResults) ratios(v setting, task string, float32Only bool) spread {
	var sample []float64
	for i, t := range r.timings[setting{task, v.batch}] {
		ours := t.solver
		if float32Only {
			ours = t.float32
		}
		sample = append(sample, r.torch[v][i]/ours)
	}
	return spreadOf(sample)
}

// versus returns the lowest ratio, over the batch sizes, of the fastest variant of PyTorch to ddiff. only float32 selects
// float32 on both sides. An error says that no variant ran.
func (r benchResults) versus(task string, float32Only bool) (float64, error) {
	best := map[int]setting{}
	for _, v := range r.variants {
		if float32Only && !hasWord(v.name, torchFloat32) {
			continue
		}
		if b, ok := best[v.batch]; !ok || spreadOf(r.torch[v]).median < spreadOf(r.torch[b]).median {
			best[v.batch] = v
		}
	}
	lowest, found := 0.0, false
	for _, v := range best {
		if ratio := r.ratios(v, task, float32Only).median; !found || ratio < lowest {
			lowest, found = ratio, true
		}
	}
	if !found {
		return 0, errors.New("run PyTorch: no variant ran")
	}
	return lowest, nil
}
