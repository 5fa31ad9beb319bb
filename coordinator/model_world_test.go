package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

var errFire = errors.New("disk on fire")

// quiescence is the limit of every wait of a walk.
const quiescence = time.Minute

// coverage counts what the walks have seen.
type coverage struct {
	states map[string]int // abstract states of the campaigns
	edges  map[string]int // changes between them
	mu     sync.Mutex     // of faults: several leaders write
	faults map[string]int // injected faults by write
	steps  int
}

func newCoverage() *coverage {
	return &coverage{states: map[string]int{}, edges: map[string]int{}, faults: map[string]int{}}
}

// String describes the coverage.
func (c *coverage) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, k := range c.faults {
		n += k
	}
	return fmt.Sprintf("steps=%d states=%d transitions=%d faults=%d fault_kinds=%d", c.steps, len(c.states), len(c.edges), n, len(c.faults))
}

// walk is a walk with a campaign of its own.
type walk struct {
	tc    *testCluster
	rt    *rapid.T
	ctx   context.Context
	seen  *coverage
	id    string
	spec  *manifest.Spec
	dir   string // of the dataset
	items int
	stop  func() // ends the commands

	commands sync.WaitGroup // that have no answer
	last     string         // abstract state

	canary    int
	leaders   []*process
	disturbed bool   // there was a fault or a change of leader since the last quiescence
	idle      func() // stops the worker; nil without one

	mu      sync.Mutex
	outcome func(it item.Item) error
	sound   bool // the preflight passes
}

// newWalk submits a campaign of two images and an unreadable file, and starts a coordinator and a worker.
func newWalk(tc *testCluster, rt *rapid.T, seen *coverage, name string) *walk {
	dir, err := os.MkdirTemp(tc.dir, name)
	must(tc.t, err)
	ctx, stop := context.WithCancel(context.Background())
	w := &walk{tc: tc, rt: rt, ctx: ctx, stop: stop, seen: seen, dir: dir, items: 6, sound: true}
	w.must(errors.Join(writeImage(dir, "a", 1), writeImage(dir, "b", 2)))
	w.must(os.WriteFile(filepath.Join(dir, "c.png"), []byte("not yet an image"), 0o644))
	w.spec = tc.spec(name)
	w.spec.Dataset.Path = dir
	w.id = w.spec.ID("")
	w.canary = rapid.IntRange(0, 2).Draw(rt, "canary items")
	w.replaceLeader()
	w.submit()
	w.toggleWorker()
	return w
}

func (w *walk) close() {
	w.stop()
	w.commands.Wait()
	for _, p := range w.leaders {
		p.stop()
	}
	if w.idle != nil {
		w.idle()
	}
}

func (w *walk) must(err error) {
	if err != nil {
		w.fatalf("%v", err)
	}
}

func (w *walk) fatalf(format string, args ...any) {
	w.rt.Helper()
	w.rt.Fatalf("campaign %s: %s", w.id, fmt.Sprintf(format, args...))
}

// submit submits the campaign, for the first time or again.
func (w *walk) submit() {
	w.verb(board.Verb{Kind: board.VerbSubmit}, board.Submission{Spec: w.spec, Order: board.Order{Canary: w.canary}})
}

// verb sends a verb until a leader, whichever it is, has answered, and sometimes again with the same key. It starts a leader if all are dead.
func (w *walk) verb(v board.Verb, body any) {
	v.Key = board.NewKey()
	for end := time.Now().Add(quiescence); ; {
		ctx, cancel := context.WithTimeout(recordtest.Administrator(w.ctx), time.Second)
		err := board.Do(ctx, w.tc.board, v, body, nil)
		late := ctx.Err() != nil
		cancel()
		if err == nil || errors.Is(err, api.ErrRefused) {
			return
		}
		if !late && !errors.Is(err, api.ErrUnavailable) && !errors.Is(err, api.ErrStore) && !errors.Is(err, api.ErrUnexpected) || time.Now().After(end) {
			w.fatalf("%s: %v", v.Kind, err)
		}
		w.leader() // another one if it is dead
	}
}

// send sends a command without waiting for its answer.
func (w *walk) send(c command) {
	w.commands.Go(func() {
		v := board.Verb{Key: board.NewKey(), Kind: c.Verb, Campaign: w.id}
		for w.ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(recordtest.Administrator(w.ctx), time.Second)
			err := board.Do(ctx, w.tc.board, v, board.Command{Outcomes: c.Outcomes, Where: c.Where, Items: c.Items}, nil)
			cancel()
			if err == nil || errors.Is(err, api.ErrRefused) {
				return
			}
		}
	})
}

func (w *walk) status() record.CampaignStatus {
	s, err := board.Status(w.ctx, w.tc.board, w.id)
	w.must(err)
	return s
}

// await waits until the status is as wanted.
func (w *walk) await(what string, wanted func(s record.CampaignStatus) bool) record.CampaignStatus {
	for end := time.Now().Add(quiescence); time.Now().Before(end); pause(w.ctx, 5*time.Millisecond) {
		if s := w.status(); wanted(s) {
			return s
		}
	}
	s := w.status()
	c := s.Campaign
	q, err := w.tc.open(w.ctx, w.id, 3)
	w.must(err)
	size, err := q.Size(w.ctx)
	w.must(err)
	waiting, leased, err := q.Depth(w.ctx)
	w.fatalf("no %s: phase %s (%s), wanted %s, released %v, round %d, number %d, status %s %+v; the queue has %d items, %d waiting, %d leased (%v)",
		what, c.Phase, c.Reason, c.Wanted, c.Released, c.Round, c.Number, s.Status.Phase, s.Status.Counts, size, waiting, leased, err)
	return s
}

// check checks after every step that the counts add up.
func (w *walk) check(*rapid.T) {
	s := w.status()
	w.seen.steps++
	w.record("", s)
	n := s.Status.Counts
	if n.Items != n.Pending+n.Running+n.Done+n.Failed+n.Dead+n.Cancelled {
		w.fatalf("the counts do not add up: %+v", n)
	}
}

// record records the abstract state of the campaign.
func (w *walk) record(note string, s record.CampaignStatus) {
	c, n := s.Campaign, s.Status.Counts
	alive := 0
	for _, p := range w.leaders {
		if !p.isDead() {
			alive++
		}
	}
	state := fmt.Sprint(note, c.Phase, c.Wanted, c.Released, n.Failed > 0, n.Dead > 0, n.Done > 0, n.Pending > 0, alive, w.idle != nil)
	w.seen.states[state]++
	if w.last != "" && w.last != state {
		w.seen.edges[w.last+" → "+state]++
	}
	w.last = state
}

// leader returns the newest leader, and starts another one if it is dead.
func (w *walk) leader() *process {
	if n := len(w.leaders); n > 0 && !w.leaders[n-1].isDead() {
		return w.leaders[n-1]
	}
	w.replaceLeader()
	return w.leaders[0]
}

// replaceLeader stops all leaders and starts another one.
func (w *walk) replaceLeader() {
	w.disturbed = true
	for _, p := range w.leaders {
		p.stop()
	}
	w.leaders = []*process{w.tc.leadUntilCrash(noFaults)}
}

// addLeader starts a leader beside the present one, as after a long pause of a process.
func (w *walk) addLeader() {
	w.disturbed = true
	w.leader()
	if len(w.leaders) < 2 {
		w.leaders = append(w.leaders, w.tc.leadUntilCrash(noFaults))
	}
}

// heal ends all faults: one sound leader and a worker run.
func (w *walk) heal() {
	p := w.leader()
	p.mu.Lock()
	p.inject = noFaults
	p.mu.Unlock()
	if p.isDead() || len(w.leaders) > 1 {
		w.replaceLeader()
	}
	if w.idle == nil {
		w.toggleWorker()
	}
}

// loseResult deletes a stored result and sends a reconcile.
func (w *walk) loseResult() {
	for info, err := range w.tc.store.List(w.ctx, w.id+"/items/") {
		w.must(err)
		if strings.HasSuffix(info.Key, "/"+item.FileResult) {
			w.must(w.tc.store.Delete(w.ctx, info.Key))
			w.send(command{Verb: board.VerbReconcile})
			return
		}
	}
}

// loseQueue drops the campaign's queue.
func (w *walk) loseQueue() {
	q, err := w.tc.inspect(w.id)
	w.must(err)
	w.must(q.Drop(w.ctx))
}

// repair replaces the unreadable file by an image.
func (w *walk) repair() {
	w.must(writeImage(w.dir, "c", 3))
}

func (w *walk) setOutcomes(outcome func(it item.Item) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome, w.sound = outcome, true
}

func (w *walk) setPreflight(sound bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sound = sound
}

func isStoreWrite(write string) bool { return strings.HasPrefix(write, "store") }

// toggleWorker starts or stops the worker.
func (w *walk) toggleWorker() {
	if w.idle != nil {
		w.idle()
		w.idle = nil
		return
	}
	w.idle = w.tc.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			// The board and the queue may be unavailable for a moment, and the record may change.
			if err := w.work(ctx); err != nil && ctx.Err() == nil {
				w.tc.log.Info("worker", "campaign", w.id, "reason", err)
			}
			pause(ctx, 5*time.Millisecond)
		}
		return nil
	})
}

// work leases items while the campaign is open, and settles them as a worker of a fleet does.
func (w *walk) work(ctx context.Context) error {
	c, err := board.Read(ctx, w.tc.board, w.id)
	if err != nil || !c.Open() {
		return err
	}
	q, err := w.tc.attach(ctx, w.id)
	if err != nil {
		return err
	}
	leases, err := q.Lease(ctx, 1, 20*time.Millisecond)
	if err != nil || len(leases) == 0 {
		return err
	}
	ctx, l := context.WithoutCancel(ctx), leases[0]
	if c, err = board.Read(ctx, w.tc.board, w.id); err != nil {
		return err
	}
	switch {
	case c.Open():
		return w.restore(ctx, l)
	case c.Wanted == record.WantCancel || c.Wanted == record.WantCancelNow:
		return l.Ack(ctx)
	}
	return l.Release(ctx)
}

// restore settles an item with the outcome that the walk has drawn.
func (w *walk) restore(ctx context.Context, l *queue.Lease) error {
	w.mu.Lock()
	worker := testCluster{store: w.tc.store, started: map[string]int{}, check: record.Checked{Worker: "model"}}
	if !w.sound {
		worker.check = record.Checked{Failed: "memory", Reason: "too little"}
	}
	if outcome := w.outcome; outcome != nil {
		worker.outcome = func(it item.Item, _ int) error { return outcome(it) }
	}
	w.mu.Unlock()
	return worker.restore(ctx, l, w.id)
}
