package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// runChaos runs the seeds one after another and prints a line for each, and the totals of several.
func runChaos(ctx context.Context, o chaosOptions) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	dir, remove, err := directory(o.keep, "ddiff-chaos-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if o.program == "" {
		if o.program, err = BuildProgram(ctx, dir); err != nil {
			return err
		}
	}
	plans, err := drawPlans(ctx, o)
	if err != nil {
		return err
	}
	r := reference{dir: filepath.Join(dir, "reference"), program: o.program, plans: plans}
	j := journalist{out: o.out, began: time.Now()}
	j.say("%s", o.settings(plans))
	if err := r.run(ctx, j.say); err != nil {
		return err
	}
	var total figures
	var failed []error
	for i := range o.seeds {
		one := o
		one.seed = o.seed + uint64(i)
		begin := time.Now()
		f, err := runSeed(ctx, one, r, filepath.Join(dir, fmt.Sprintf("seed-%d", one.seed)))
		if err != nil {
			failed = append(failed, fmt.Errorf("seed %d: %w", one.seed, err))
		}
		total.add(f)
		if o.seeds > 1 {
			fmt.Fprintf(o.out, "%s seconds=%.0f\n", f.line(fmt.Sprintf("seed=%d", one.seed)), time.Since(begin).Seconds())
		}
		if ctx.Err() != nil {
			break
		}
	}
	label := fmt.Sprintf("seed=%d", o.seed)
	if o.seeds > 1 {
		label = fmt.Sprintf("seeds=%d seeds_failed=%d", o.seeds, len(failed))
	}
	fmt.Fprintln(o.out, total.line(label))
	return errors.Join(failed...)
}

// runSeed runs the cluster under faults, and beside it the clusters with poison, a prior that hangs and a changed dataset.
// With several seeds, the events go to a file in dir.
func runSeed(ctx context.Context, o chaosOptions, r reference, dir string) (f figures, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return f, err
	}
	j := journalist{out: o.out, began: time.Now()}
	if o.seeds > 1 {
		file, err := os.Create(filepath.Join(dir, "events.log"))
		if err != nil {
			return f, err
		}
		defer func() {
			if closeErr := file.Close(); err == nil {
				err = closeErr
			}
		}()
		j.out = file
	}
	ctx, cancel := context.WithTimeout(ctx, o.seedLimit)
	defer cancel()
	s := &session{o: o, dir: dir, journalist: &j, reference: r, plans: r.plans}
	var beside sync.WaitGroup
	var errs [2]error
	var poisoned figures
	if !o.brief {
		beside.Go(func() { poisoned, errs[0] = j.beside(ctx, o, filepath.Join(dir, "beside")) })
	}
	f, errs[1] = s.run(ctx)
	beside.Wait()
	f.add(poisoned)
	return f, errors.Join(errs[:]...)
}

// beside runs the clusters beside the main one, one after another.
func (j *journalist) beside(ctx context.Context, o chaosOptions, dir string) (f figures, err error) {
	for _, each := range []struct {
		name string
		run  func(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (figures, error)
	}{
		{"poison", runPoison}, {"hang", runHang}, {"restless", runRestless}, {"changed", runChanged},
	} {
		begin := time.Now()
		found, runErr := each.run(ctx, o, filepath.Join(dir, each.name), func(format string, args ...any) {
			j.say("%s: %s", each.name, fmt.Sprintf(format, args...))
		})
		j.say("%s: ended after %.1f s, error: %v", each.name, time.Since(begin).Seconds(), runErr)
		if runErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", each.name, runErr))
		}
		f.add(found)
	}
	return f, err
}

// journalist prints events with their times.
type journalist struct {
	out   io.Writer
	began time.Time
	mu    sync.Mutex // guards the output
}

func (j *journalist) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%6.1f s  %s\n", time.Since(j.began).Seconds(), fmt.Sprintf(format, args...))
}
