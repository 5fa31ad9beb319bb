package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// The cluster in which workers end with any item: each of them is killed every twelve seconds, and an item takes four.
const (
	restlessWorkers = 8
	restlessItems   = 200
	restlessBrief   = 80 // items in continuous integration
	restlessItem    = 4 * time.Second
	restlessLease   = 12 * time.Second // the leader sees the end of a worker some seconds later
	restlessPause   = 1500 * time.Millisecond
	restlessDone    = 2 // items that are restored between two kills: a busy machine restores fewer in a pause
	restlessLimit   = 6 * time.Minute
)

// runRestless runs a campaign while its workers are killed in turn. One item is made to kill each worker that runs it alone. It is dead
// after a bounded number of attempts, and no other item is.
func runRestless(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (f figures, err error) {
	defer caught(&err)
	ctx, cancel := context.WithTimeout(ctx, restlessLimit)
	defer cancel()
	items := restlessItems
	if o.brief {
		items = restlessBrief
	}
	c, err := Start(ctx, Options{Dir: dir, Program: o.program, Directory: true, Lease: restlessLease, Election: term, Stall: stall})
	defer c.Stop()
	check(err)
	try(c.AddCoordinator(ctx))
	for range restlessWorkers {
		try(c.AddWorker(ctx, "--simulate", restlessItem.String(), "--batch", "1", "--log-format", "json"))
	}
	var list strings.Builder
	list.WriteString("image,sha256,width,height\n")
	for i := range items {
		fmt.Fprintf(&list, "s3://images/%06d.png,%064x,64,64\n", i, i+1)
	}
	file := filepath.Join(dir, "restless.yaml")
	check(os.WriteFile(filepath.Join(dir, "list.csv"), []byte(list.String()), 0o644))
	check(os.WriteFile(file, fmt.Appendf(nil, "name: restless\ndataset: {path: %q, size: 64}\ntasks: [hdr]\n", filepath.Join(dir, "list.csv")), 0o644))
	id := strings.TrimSpace(try(c.Output(ctx, "submit", file)))

	watched, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	h := &hitman{c: c, say: say}
	beside.Go(func() { h.killInTurn(watched, filepath.Join(c.Results(id), item.Key("*", item.FileResult))) })
	beside.Go(func() { h.killHolders(watched, filepath.Join(c.Results(id), "checkpoints")) })

	out, err := c.Output(ctx, "status", "--watch", id)
	if err != nil && !strings.HasPrefix(lastLine(out), "done=") {
		return f, fmt.Errorf("watch campaign %s: %w", id, err)
	}
	stop()
	beside.Wait()
	say("%s: %s; workers killed: %d in turn, %d by item %s", id, lastLine(out), h.inTurn, h.byItem, h.item)
	for _, list := range try(filepath.Glob(filepath.Join(c.Results(id), result.FailuresFolder, id, "*"))) {
		say("%s", try(os.ReadFile(list)))
	}
	st := try(c.Status(ctx, id))
	f.poison = min(st.Counts.Dead, 1)
	f.innocent = st.Counts.Dead - f.poison
	if n := st.Counts; st.Phase != record.PhaseFinished || n.Dead != 1 || n.Done != items-1 || h.byItem > 12 {
		return f, fmt.Errorf("campaign %s is %s with %+v, and one item killed %d workers; want one dead item after at most 12", id, st.Phase, n, h.byItem)
	}
	return f, nil
}

// hitman kills the workers of a cluster, and starts each again.
type hitman struct {
	c   *Cluster
	say func(format string, args ...any)

	mu             sync.Mutex // guards the processes
	inTurn, byItem int
	item           string // the first that ran alone
}

func (h *hitman) kill(p *Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.Kill()
	if err := p.Start(); err != nil {
		h.say("%v", err)
	}
}

// killInTurn kills one worker after another until ctx ends, while results appear.
func (h *hitman) killInTurn(ctx context.Context, results string) {
	for due := 0; ctx.Err() == nil; sleep(ctx, restlessPause) {
		done, _ := filepath.Glob(results) // the pattern is valid
		if len(done) < due {
			continue
		}
		due = len(done) + restlessDone
		h.kill(h.c.Workers[h.inTurn%len(h.c.Workers)])
		h.inTurn++
	}
}

// killHolders kills the workers that start the first item which runs alone.
func (h *hitman) killHolders(ctx context.Context, checkpoints string) {
	killed := time.Time{}
	for ; ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		found, _ := filepath.Glob(filepath.Join(checkpoints, "*.starts")) // the pattern is valid
		if h.item == "" && len(found) > 0 {
			h.item = strings.TrimSuffix(filepath.Base(found[0]), ".starts")
		}
		data, err := os.ReadFile(filepath.Join(checkpoints, h.item+".starts"))
		var starts []struct {
			Worker string    `json:"worker"`
			At     time.Time `json:"at"`
		}
		if err != nil || json.Unmarshal(data, &starts) != nil || len(starts) == 0 {
			continue
		}
		last := starts[len(starts)-1]
		if !last.At.After(killed) {
			continue
		}
		killed = last.At
		for _, p := range h.c.Workers {
			if p.Name == last.Worker {
				h.byItem++
				h.kill(p)
			}
		}
	}
}

// TestChaosRestless runs the cluster whose workers are killed.
func TestChaosRestless(t *testing.T) {
	t.Parallel()
	runBeside(t, runRestless)
}
