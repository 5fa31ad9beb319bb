package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// answeringBoard is a board with one answer to every read, and the times of the reads.
type answeringBoard struct {
	mu     sync.Mutex // of the next two lines
	answer func(ctx context.Context) ([]byte, error)
	reads  []time.Time
	keys   map[string]bool
	watch  error // of every watch
	starts []time.Time
}

func (b *answeringBoard) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	b.mu.Lock()
	b.keys[key], b.reads = true, append(b.reads, time.Now())
	answer := b.answer
	b.mu.Unlock()
	data, err := answer(ctx)
	return data, 1, err
}

// change changes the board between two reads.
func (b *answeringBoard) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *answeringBoard) Watch(context.Context, string) iter.Seq2[queue.Change, error] {
	b.starts = append(b.starts, time.Now())
	return func(yield func(queue.Change, error) bool) { yield(queue.Change{}, b.watch) }
}

// A failed watch of the board is logged, and repeated after a pause.
func TestWatchIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		board := &answeringBoard{watch: errors.New("no responders")}
		f, _, log := fleetOf(t, func(c *Config) { c.Board = board })
		ctx, cancel := context.WithTimeout(t.Context(), 3*notReadyPause-1)
		defer cancel()
		if err := f.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end is %v", err)
		}
		if n := strings.Count(log.String(), "could not watch the campaigns, will retry"); n != 3 || len(board.starts) != 3 ||
			board.starts[1].Sub(board.starts[0]) != notReadyPause {
			t.Errorf("watches at %v, log %s", board.starts, log)
		}
	})
}

// The number of workers is that of the last status with one. It is read seldom once it is known. Only a failed read is
// logged, and none that the end of the worker interrupts.
func TestCountOfWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		board, log := &answeringBoard{keys: map[string]bool{}}, &strings.Builder{}
		f, _, _ := fleetOf(t, func(c *Config) {
			c.Board, c.Logger = board, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- f.countWorkers(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(board.reads) > 0 {
			t.Fatalf("%d reads without a campaign", len(board.reads))
		}
		status := func(workers int) []byte {
			data, err := json.Marshal(record.Status{Workers: workers})
			must(t, err)
			return data
		}
		board.change(func() { board.answer = func(context.Context) ([]byte, error) { return nil, queue.ErrNoRecord } })
		f.add(t, "a")
		for _, tt := range []struct {
			name    string
			data    []byte
			err     error
			workers int
			logged  string
			pause   time.Duration
		}{
			{"no status", nil, queue.ErrNoRecord, 0, "", firstCount},
			{"outage", nil, errors.New("no responders"), 0, "no responders", firstCount},
			{"damaged", []byte("{"), nil, 0, "read status", firstCount},
			{"no workers", status(0), nil, 0, "", firstCount},
			{"seven workers", status(7), nil, 7, "", countPause},
			{"no workers again", status(0), nil, 7, "", firstCount},
			{"no status again", nil, queue.ErrNoRecord, 7, "", firstCount},
			{"one worker", status(1), nil, 1, "", countPause},
		} {
			board.change(func() { board.answer = func(context.Context) ([]byte, error) { return tt.data, tt.err } })
			time.Sleep(2 * countPause) // reads with the pause of the answer before
			synctest.Wait()
			board.change(func() {
				log.Reset()
				board.reads = nil
			})
			time.Sleep(200 * tt.pause)
			synctest.Wait()
			least, most := time.Hour, time.Duration(0)
			for i := range len(board.reads) - 1 {
				pause := board.reads[i+1].Sub(board.reads[i])
				least, most = min(least, pause), max(most, pause)
			}
			low, high := float64(least)/float64(tt.pause), float64(most)/float64(tt.pause)
			if !(low >= 0.5) || !(low < 0.6) || !(high < 1.5) || !(high > 1.4) {
				t.Errorf("%s: pauses from %v to %v", tt.name, least, most)
			}
			others, err := f.Others(ctx)
			if f.workers != tt.workers || (err == nil) != (tt.workers > 0) || others != max(tt.workers-1, 0) {
				t.Errorf("%s: %d workers, want %d; %d others, %v", tt.name, f.workers, tt.workers, others, err)
			}
			if (log.Len() > 0) != (tt.logged != "") || !strings.Contains(log.String(), tt.logged) {
				t.Errorf("%s: log %s", tt.name, log)
			}
		}
		board.change(func() {
			log.Reset()
			board.answer = func(ctx context.Context) ([]byte, error) {
				<-ctx.Done()
				return nil, errors.New("interrupted")
			}
		})
		time.Sleep(2 * countPause)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || log.Len() > 0 {
			t.Errorf("the end is %v, log %s", err, log)
		}
		if !board.keys[record.KeyStatusPrefix+"a"] || len(board.keys) != 1 {
			t.Errorf("read %v", board.keys)
		}
	})
}

// A campaign whose queue is not ready is passed over; an error that ends the worker ends the request.
func TestNextPassesOverCampaignsThatAreNotReady(t *testing.T) {
	t.Parallel()
	empty := func(f *Fleet, now *clock, c *campaign) {
		f.recordEmpty(c, f.snapshotOf(c))
		c.empty.check = now.now
	}
	for name, tt := range map[string]struct {
		first, second func(*record.Campaign)
		change        func(f *Fleet, now *clock, c *campaign)
	}{
		"preflights": {
			func(r *record.Campaign) { r.Phase = record.PhasePreflight },
			func(r *record.Campaign) { r.Phase = record.PhasePreflight }, nil,
		},
		"empty preflights": {
			func(r *record.Campaign) { r.Phase = record.PhasePreflight },
			func(r *record.Campaign) { r.Phase = record.PhasePreflight }, empty,
		},
		"preflight and class": {func(r *record.Campaign) { r.Phase = record.PhasePreflight }, func(*record.Campaign) {}, nil},
		"classes":             {func(r *record.Campaign) { r.Priority = record.PriorityHigh }, func(*record.Campaign) {}, nil},
		"one class":           {func(*record.Campaign) {}, func(*record.Campaign) {}, nil},
		"empty class":         {func(*record.Campaign) {}, func(*record.Campaign) {}, empty},
	} {
		asked := ""
		f, now, _ := fleetOf(t, func(c *Config) {
			c.Attach = func(_ context.Context, id string) (*queue.Queue, error) {
				if asked += id; id == "b" {
					return nil, queue.ErrClosed
				}
				return nil, queue.ErrNotReady
			}
		})
		a, b := f.add(t, "a", tt.first), f.add(t, "b", tt.second)
		if tt.change != nil {
			tt.change(f, now, a)
			tt.change(f, now, b)
		}
		next := f.Next
		if strings.HasSuffix(name, "preflights") {
			next = func(ctx context.Context, _ time.Duration) (gpuworker.Assignment, []*queue.Lease, error) {
				return f.leasePreflight(ctx, []*campaign{a, b})
			}
		}
		if _, leases, err := next(t.Context(), time.Millisecond); !errors.Is(err, queue.ErrClosed) || len(leases) > 0 || asked != "ab" {
			t.Errorf("%s: asked %q, %d leases, %v", name, asked, len(leases), err)
		}
	}
}
