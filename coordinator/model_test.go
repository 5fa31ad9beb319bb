package coordinator_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/internal/report"
	"ddiff/restore/item"
)

// modelWalks is the number of walks of the normal test suite, DDIFF_MODEL_WALKS that of `make model`. Each walk has about
// modelSteps steps.
const (
	modelWalks = 8
	modelTime  = 10 * time.Second // no walk of the normal suite begins later
	shortTime  = 2 * time.Second  // in -short mode
	modelSteps = 40
)

// TestVerbsModel sends the verbs in random order to campaigns whose coordinators die or fail at random writes to the
// board, the queue and the store, and checks the campaign whenever it is quiescent. The server, the queue, the store and
// the coordinators are real; the worker restores an item at once. -rapid.seed repeats the choices of a walk, but not the
// times at which goroutines run.
func TestVerbsModel(t *testing.T) {
	walks, begin, limit := modelWalks, time.Now(), modelTime
	if testing.Short() {
		limit = shortTime
	}
	if s := os.Getenv("DDIFF_MODEL_WALKS"); s != "" {
		var err error
		walks, err = strconv.Atoi(s)
		must(t, err)
		limit = math.MaxInt64
	}
	for name, value := range map[string]string{
		"rapid.checks": strconv.Itoa(walks), "rapid.steps": strconv.Itoa(modelSteps), "rapid.nofailfile": "true", "rapid.shrinktime": "20s",
	} {
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
		if !given {
			must(t, flag.Set(name, value))
		}
	}
	tc := newTestCluster(t, 0)
	seen := newCoverage()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if time.Since(begin) > limit {
			return
		}
		n++
		w := newWalk(tc, rt, seen, fmt.Sprintf("walk-%d", n))
		defer w.close()
		w.changeOutcomes(rt)
		passTime := func(rt *rapid.T) {
			pause(context.Background(), time.Duration(rapid.IntRange(1, 60).Draw(rt, "ms"))*time.Millisecond)
		}
		rt.Repeat(map[string]func(*rapid.T){ // several names make an action more frequent
			"":                      w.check,
			"pause":                 func(*rapid.T) { w.want(record.WantPause) },
			"resume":                func(*rapid.T) { w.want(record.WantRun) },
			"cancel":                func(*rapid.T) { w.want(record.WantCancel) },
			"cancel now":            func(*rapid.T) { w.want(record.WantCancelNow) },
			"submit again":          func(*rapid.T) { w.submit() },
			"retry":                 w.retry,
			"reconcile":             func(*rapid.T) { w.send(command{Verb: board.VerbReconcile}) },
			"lose a result":         func(*rapid.T) { w.loseResult() },
			"lose the queue":        func(*rapid.T) { w.loseQueue() },
			"change the dataset":    func(*rapid.T) { w.repair() },
			"outcomes":              w.changeOutcomes,
			"worker":                func(*rapid.T) { w.toggleWorker() },
			"fault":                 w.arm,
			"verb with a fault":     w.verbWithFault,
			"verb with a fault (2)": w.verbWithFault,
			"verb with a fault (3)": w.verbWithFault,
			"verb with a fault (4)": w.verbWithFault,
			"leader":                func(*rapid.T) { w.replaceLeader() },
			"two leaders":           func(*rapid.T) { w.addLeader() },
			"time passes":           passTime,
			"time passes (2)":       passTime,
			"time passes (3)":       passTime,
			"time passes (4)":       passTime,
			"quiescence":            func(*rapid.T) { w.settle() },
		})
		w.finish()
	})
	t.Logf("walks=%d %v", n, seen)
}

// want requests a state. A campaign may refuse it.
func (w *walk) want(wanted record.Wanted) {
	w.verb(board.Verb{Kind: string(wanted), Campaign: w.id}, nil)
}

// retry sends a retry of failed items, dead items or both, perhaps with a filter, or of those whose ids begin with some digits.
func (w *walk) retry(rt *rapid.T) {
	c := command{Verb: board.VerbRetry}
	switch rapid.IntRange(0, 3).Draw(rt, "selection") {
	case 0:
		c.Outcomes = []item.Outcome{item.OutcomeFailed}
	case 1:
		c.Outcomes = []item.Outcome{item.OutcomeDead}
	case 2:
		c.Outcomes = []item.Outcome{item.OutcomeFailed, item.OutcomeDead}
		c.Where = "fire"
	case 3:
		c.Outcomes = []item.Outcome{item.OutcomeFailed, item.OutcomeDead}
		c.Items = rapid.SliceOfN(rapid.SampledFrom(strings.Split("0123456789abcdef", "")), 1, 8).Draw(rt, "beginnings")
	}
	w.send(c)
}

// settle ends all faults and waits until the campaign is in the state that its record asks for.
func (w *walk) settle() {
	w.heal()
	w.commands.Wait()
	s := w.await("quiescence", func(s record.CampaignStatus) bool {
		c := s.Campaign
		if s.Status.Phase != c.Phase {
			return false
		}
		if c.Phase == record.PhaseRejected {
			return c.Wanted == record.WantPause
		}
		return c.Phase == map[record.Wanted]record.Phase{
			record.WantRun: record.PhaseFinished, record.WantPause: record.PhasePaused,
			record.WantCancel: record.PhaseCancelled, record.WantCancelNow: record.PhaseCancelled,
		}[c.Wanted]
	})
	w.record("quiescent", s)
	w.checkQuiescent(s)
}

// checkQuiescent checks the counts, the queue, the report and the answers of a quiescent campaign.
func (w *walk) checkQuiescent(s record.CampaignStatus) {
	c, n := s.Campaign, s.Status.Counts
	open := 0
	switch c.Phase {
	case record.PhaseFinished:
		open = n.Pending + n.Running + n.Cancelled
	case record.PhaseCancelled:
		open = n.Pending + n.Running
	}
	if open != 0 {
		w.fatalf("%s with open items: %+v", c.Phase, n)
	}
	if !c.Phase.Ended() {
		return
	}
	q, err := w.tc.inspect(w.id)
	w.must(err)
	// A runner may be about to see that a campaign was cancelled again. A consumer may stay after a crash, for the archive.
	size := uint64(1)
	exists, begin := true, time.Now()
	for ; (size > 0 || exists && !w.disturbed) && time.Since(begin) < quiescence; pause(w.ctx, 5*time.Millisecond) {
		size, err = q.Size(w.ctx)
		w.must(err)
		exists, err = q.Exists(w.ctx)
		w.must(err)
	}
	if size > 0 || exists && !w.disturbed {
		w.fatalf("%s: the queue has %d items, its consumer exists: %v", c.Phase, size, exists)
	}
	w.disturbed = exists
	if c.Phase == record.PhaseFinished {
		if n.Items != w.items {
			w.fatalf("finished with %+v, want %d items", n, w.items)
		}
		if _, err := w.tc.store.Get(w.ctx, w.id+"/"+report.KeyPage); err != nil {
			w.fatalf("finished without a report: %v", err)
		}
	}
}

// finish repairs everything and runs the campaign to its end: every item is done.
func (w *walk) finish() {
	w.setOutcomes(nil)
	w.repair()
	w.settle()
	var s record.CampaignStatus
	for range 4 { // a rejected campaign may need two rounds
		if s = w.status(); s.Campaign.Phase == record.PhaseFinished {
			break
		}
		w.want(record.WantRun)
		w.settle()
	}
	w.send(command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed, item.OutcomeDead}})
	w.settle()
	w.send(command{Verb: board.VerbReconcile})
	w.settle()
	s = w.status()
	if want := (record.Counts{Items: w.items, Done: w.items}); s.Campaign.Phase != record.PhaseFinished || s.Status.Counts != want {
		w.fatalf("the campaign ends %s with %+v, want %+v", s.Campaign.Phase, s.Status.Counts, want)
	}
	if n := w.tc.results(w.id); n != w.items {
		w.fatalf("%d results in storage, want %d", n, w.items)
	}
}

// arm makes the n-th write of the leader from now crash it, before or after the write, or fail.
func (w *walk) arm(rt *rapid.T) {
	n := rapid.IntRange(1, 8).Draw(rt, "write")
	f := rapid.SampledFrom([]fault{crashBefore, crashAfter, failWrite}).Draw(rt, "fault")
	w.disturbed = true
	p := w.leader()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inject = func(write string) fault {
		if n--; n > 0 {
			return noFault
		}
		if f == failWrite && !isStoreWrite(write) {
			return noFault // the next write to the store fails
		}
		p.inject = noFaults
		w.seen.mu.Lock()
		defer w.seen.mu.Unlock()
		w.seen.faults[fmt.Sprint(write, " ", f)]++
		return f
	}
}

// verbWithFault sends a verb to a leader that has a fault soon, and lets time pass.
func (w *walk) verbWithFault(rt *rapid.T) {
	w.arm(rt)
	both := []item.Outcome{item.OutcomeFailed, item.OutcomeDead}
	switch rapid.IntRange(0, 7).Draw(rt, "verb") {
	case 0:
		w.want(record.WantPause)
	case 1:
		w.want(record.WantCancel)
	case 2:
		w.want(record.WantCancelNow)
	case 3:
		w.loseResult()
	case 4, 5:
		w.send(command{Verb: board.VerbRetry, Outcomes: both})
	default:
		w.want(record.WantRun)
	}
	pause(w.ctx, time.Duration(rapid.IntRange(10, 80).Draw(rt, "ms"))*time.Millisecond)
}

// changeOutcomes draws the outcome of the next attempts at each item, and that of the preflight.
func (w *walk) changeOutcomes(rt *rapid.T) {
	kinds := rapid.SliceOfN(rapid.IntRange(0, 3), 4, 4).Draw(rt, "outcomes")
	w.setOutcomes(func(it item.Item) error {
		switch kinds[it.Index%len(kinds)] {
		case 0:
			return errFire
		case 1:
			return errDead
		}
		return nil
	})
	w.setPreflight(rapid.IntRange(0, 5).Draw(rt, "preflight") > 0)
}
