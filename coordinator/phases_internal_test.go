package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/ledger"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestExpected has the number of items that the queue must hold, by phase.
func TestExpected(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	for i := range 5 {
		r.ledger.Add(id(i))
	}
	r.ledger.Settle(id(0), 0, ledger.Done, "")
	check := func(name string, p manifest.Phase, want int) {
		t.Helper()
		r.rec.Phase = p
		if got := r.expected(); got != want {
			t.Errorf("%s: %d items, want %d", name, got, want)
		}
		if r.queueComplete(want-1) || !r.queueComplete(want) {
			t.Errorf("%s: a queue of %d items is incomplete, or one less is complete", name, want)
		}
	}
	check("queued", manifest.PhaseQueued, 0)
	check("preflight", manifest.PhasePreflight, 1)
	r.trial.checked = &manifest.Checked{}
	check("answered preflight", manifest.PhasePreflight, 0)
	r.trial.canary = []string{id(0), id(1), id(2)}
	check("canary", manifest.PhaseCanary, 2)
	r.rec.Shards, r.windows.stored = 1, 2
	check("a window is not published", manifest.PhaseRunning, 0)
	r.windows.stored = 1
	check("all windows are published", manifest.PhaseRunning, 4)
	r.windows.stored = 0
	check("more windows are published", manifest.PhaseRunning, 4)
	check("paused", manifest.PhasePaused, 0)
}

// fill adds n pending items.
func fill(r *runner, n int) {
	for i := range n {
		r.ledger.Add(id(i))
	}
}

// TestNeedsWindow has the states in which the next window is stored.
func TestNeedsWindow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		name   string
		change func(r *runner)
		want   bool
	}{
		{"no window with items", func(*runner) {}, true},
		{"complete", func(r *runner) { r.windows.complete = true }, false},
		{"paused", func(r *runner) { r.rec.Wanted = manifest.WantPause }, false},
		{"cancelled", func(r *runner) { r.rec.Wanted = manifest.WantCancel }, false},
		{"waits for the preflight", func(r *runner) { r.windows.sound = 0 }, false},
		{"released, but not running", func(r *runner) { r.rec.Released = true }, false},
		{"all windows are published", func(r *runner) {
			r.rec.Released, r.rec.Phase, r.windows.stored, r.rec.Shards = true, manifest.PhaseRunning, 2, 2
		}, true},
		{"a window is not published", func(r *runner) {
			r.rec.Released, r.rec.Phase, r.windows.stored, r.rec.Shards = true, manifest.PhaseRunning, 2, 1
		}, false},
		{"work at the limit", func(r *runner) { r.readAhead = 9; fill(r, 9) }, true},
		{"much work", func(r *runner) { r.readAhead = 9; fill(r, 10) }, false},
		{"much work after a tick", func(r *runner) { r.readAhead, r.ticked = 9, true; fill(r, 10) }, true},
		{"much work in a cluster", func(r *runner) { fill(r, 10) }, true},
	} {
		r := decidingRunner(t, &now, &strings.Builder{})
		c.change(r)
		if got := r.needsWindow(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// The canary covers as many tasks as possible, each item once.
func TestCanaries(t *testing.T) {
	t.Parallel()
	var items []item.Item
	for i, task := range []string{"a", "a", "a", "b", "b", "c"} {
		items = append(items, item.Item{ID: fmt.Sprint(task, i), Task: task})
	}
	for n, want := range map[int][]string{
		0: nil, 1: {"a0"}, 3: {"a0", "b3", "c5"}, 4: {"a0", "b3", "c5", "a1"}, 6: {"a0", "b3", "c5", "a1", "b4", "a2"},
		9: {"a0", "b3", "c5", "a1", "b4", "a2"},
	} {
		if got := identities(canaries(items, n)); !slices.Equal(got, want) {
			t.Errorf("%d canaries: %q, want %q", n, got, want)
		}
	}
}

// An answer replaces its command; the record keeps the newest sixteen answers.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := &manifest.Campaign{}
	for i := range maxAnswers + 3 {
		c.Commands = []manifest.Command{{ID: "before"}, {ID: fmt.Sprint(i)}, {ID: "after"}}
		answer(c, manifest.Answer{ID: fmt.Sprint(i), Items: i})
		if len(c.Commands) != 2 || c.Commands[0].ID != "before" || c.Commands[1].ID != "after" {
			t.Fatalf("commands %+v", c.Commands)
		}
		answer(c, manifest.Answer{ID: fmt.Sprint(i), Items: -1}) // of another coordinator
		if n := len(c.Answered); n != min(i+1, maxAnswers) || c.Answered[n-1].Items != i || c.Answered[0].Items != max(0, i+1-maxAnswers) {
			t.Fatalf("answers %+v", c.Answered)
		}
	}
	c.Commands = []manifest.Command{{ID: "first"}}
	answer(c, manifest.Answer{ID: "first"})
	if len(c.Commands) != 0 {
		t.Errorf("the only command stays")
	}
}

// A retry selects failed and dead items by outcome, identity and reason.
func TestRetryMatcher(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	for i, to := range []ledger.State{ledger.Pending, ledger.Done, ledger.Failed, ledger.Dead, ledger.Failed} {
		r.ledger.Add(id(i))
		r.ledger.Settle(id(i), 0, to, []string{"", "", "no light", "no memory", "no memory"}[i])
	}
	both := []item.Outcome{item.OutcomeFailed, item.OutcomeDead}
	for _, c := range []struct {
		command manifest.Command
		want    []int
	}{
		{manifest.Command{Outcomes: both}, []int{2, 3, 4}},
		{manifest.Command{Outcomes: both[:1]}, []int{2, 4}},
		{manifest.Command{Outcomes: both[1:]}, []int{3}},
		{manifest.Command{Outcomes: append([]item.Outcome{item.OutcomeDone}, both...)}, []int{2, 3, 4}},
		{manifest.Command{Outcomes: both, Where: "memory"}, []int{3, 4}},
		{manifest.Command{Outcomes: both, Items: []string{id(1), id(4)}}, []int{4}},
		{manifest.Command{}, nil},
	} {
		match := r.matcher(c.command)
		var got []int
		for i := range 6 {
			if match(id(i)) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: items %v, want %v", c.command, got, c.want)
		}
	}
}

// TestRefusedCommands has the commands that a state refuses, before anything is read.
func TestRefusedCommands(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		phase  manifest.Phase
		wanted manifest.Wanted
		want   string
	}{
		{manifest.PhaseRunning, manifest.WantCancel, "the campaign is cancelled; resume it first"},
		{manifest.PhaseRunning, manifest.WantCancelNow, "the campaign is cancelled; resume it first"},
		{manifest.PhaseCancelled, manifest.WantRun, "the campaign is cancelled; resume it first"},
		{manifest.PhaseRejected, manifest.WantPause, "the campaign is rejected; resume it first"},
		{manifest.PhaseQueued, manifest.WantRun, "has not passed its preflight and canary"},
	} {
		r := decidingRunner(t, &now, &strings.Builder{})
		r.rec.Phase, r.rec.Wanted = c.phase, c.wanted
		n, err := r.executeVerb(t.Context(), manifest.Command{ID: "1", Verb: manifest.CommandRetry})
		var refused rejection
		if n != 0 || !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %d, %v, want %q", c.phase, c.wanted, n, err, c.want)
		}
	}
}

// The preflight is answered by a worker's checks, or by an outcome of a worker that gave up.
func TestPreflightAnswer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for payload, want := range map[string]string{
		`{"worker":"gpu","checks":[{"name":"memory","found":"12 GiB"}]}`:                    "",
		`{"worker":"gpu","outcome":"done"}`:                                                 "",
		`{"worker":"gpu","outcome":"dead","reason":"out of attempts"}`:                      "worker",
		`{"worker":"gpu","failed":"prior","checks":[{"name":"memory","found":"12 GiB"}]}`:   "prior",
		`{"worker":"gpu","outcome":"failed","checks":[{"name":"memory","found":"12 GiB"}]}`: "worker",
	} {
		var log strings.Builder
		r := decidingRunner(t, &now, &log)
		r.settlePreflight([]byte(payload))
		if r.trial.checked == nil || r.trial.checked.Failed != want || r.trial.checked.Worker != "gpu" {
			t.Errorf("%s: %+v", payload, r.trial.checked)
		}
		logged := strings.Contains(log.String(), "12 GiB")
		if logged != (want == "" && strings.Contains(payload, "12 GiB")) {
			t.Errorf("%s: log %s", payload, log.String())
		}
		r.trial.checked = nil
		r.settlePreflight([]byte(payload[:9]))
		if r.trial.checked != nil || !strings.Contains(log.String(), "skipped a preflight answer") {
			t.Errorf("a damaged answer: %+v", r.trial.checked)
		}
	}
}

// TestAdvance has the steps of the phases before the first item is published.
func TestAdvance(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
	step := func(name string, want manifest.Phase, released bool) {
		t.Helper()
		if err := r.advance(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.rec.Phase != want || r.rec.Released != released {
			t.Errorf("%s: phase %s, released %t", name, r.rec.Phase, r.rec.Released)
		}
	}
	set := func(p manifest.Phase) {
		t.Helper()
		must(t, r.save(t.Context(), func(c *manifest.Campaign) { c.Phase = p }))
	}
	step("no window", manifest.PhaseQueued, false)
	set(manifest.PhasePreflight)
	step("no answer", manifest.PhasePreflight, false)
	r.trial.checked = &manifest.Checked{Failed: "memory", Reason: "12 GiB are missing"}
	var rejected rejection
	if err := r.advance(t.Context()); !errors.As(err, &rejected) || err.Error() != "preflight: memory: 12 GiB are missing" {
		t.Errorf("error %v", err)
	}
	r.trial.checked = &manifest.Checked{}
	must(t, r.save(t.Context(), func(c *manifest.Campaign) { c.Canary = 2 }))
	step("a canary is wanted", manifest.PhaseCanary, false)
	r.trial.canary = []string{id(0), id(1)}
	r.ledger.Add(id(0))
	r.ledger.Add(id(1))
	step("the canary is pending", manifest.PhaseCanary, false)
	r.ledger.Settle(id(0), 0, ledger.Failed, "no light")
	step("one of the canary is pending", manifest.PhaseCanary, false)
	r.ledger.Settle(id(1), 0, ledger.Dead, "no memory")
	if err := r.advance(t.Context()); !errors.As(err, &rejected) || !strings.Contains(err.Error(), "none of 2 items") || !strings.Contains(err.Error(), "is dead: no memory") {
		t.Errorf("error %v", err)
	}
	r.ledger.Settle(id(0), 0, ledger.Done, "")
	step("one of the canary is restored", manifest.PhaseRunning, true)
	step("running", manifest.PhaseRunning, true)
	if r.trial.canary != nil {
		t.Error("the canary stays")
	}
}
