package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

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

// A retry selects failed and dead items by outcome, identity and reason.
func TestRetryMatcher(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	for i, to := range []ledger.State{ledger.Pending, ledger.Done, ledger.Failed, ledger.Dead, ledger.Failed} {
		r.outcomes.ledger.Add(id(i))
		r.outcomes.ledger.Settle(id(i), 0, to, []string{"", "", "no light", "no memory", "no memory"}[i])
	}
	both := []item.Outcome{item.OutcomeFailed, item.OutcomeDead}
	for _, c := range []struct {
		command board.Command
		want    []int
	}{
		{board.Command{Outcomes: both}, []int{2, 3, 4}},
		{board.Command{Outcomes: both[:1]}, []int{2, 4}},
		{board.Command{Outcomes: both[1:]}, []int{3}},
		{board.Command{Outcomes: append([]item.Outcome{item.OutcomeDone}, both...)}, []int{2, 3, 4}},
		{board.Command{Outcomes: both, Where: "memory"}, []int{3, 4}},
		{board.Command{Outcomes: both, Items: []string{id(1), id(4)}}, []int{4}},
		{board.Command{}, nil},
	} {
		match := r.matcher(&command{Command: c.command})
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
		phase  record.Phase
		wanted record.Wanted
		want   string
	}{
		{record.PhaseRunning, record.WantCancel, "the campaign is cancelled; resume it first"},
		{record.PhaseRunning, record.WantCancelNow, "the campaign is cancelled; resume it first"},
		{record.PhaseCancelled, record.WantRun, "the campaign is cancelled; resume it first"},
		{record.PhaseRejected, record.WantPause, "the campaign is rejected; resume it first"},
		{record.PhaseQueued, record.WantRun, "has not passed its preflight and canary"},
	} {
		r := decidingRunner(t, &now, &strings.Builder{})
		r.rec.Phase, r.rec.Wanted = c.phase, c.wanted
		n, err := r.executeVerb(t.Context(), &command{key: "1", verb: board.VerbRetry})
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
		`{"worker":"gpu","failed":"worker","reason":"the worker crashed"}`:                  "worker",
	} {
		var log strings.Builder
		r := decidingRunner(t, &now, &log)
		r.notePreflight([]byte(payload))
		if r.trial.checked == nil || r.trial.checked.Failed != want || r.trial.checked.Worker != "gpu" {
			t.Errorf("%s: %+v", payload, r.trial.checked)
		}
		if c := r.trial.checked; strings.Contains(c.Reason, "too little memory") != (want == "worker") {
			t.Errorf("%s: reason %q", payload, c.Reason)
		}
		logged := strings.Contains(log.String(), "12 GiB")
		if logged != (want == "" && strings.Contains(payload, "12 GiB")) {
			t.Errorf("%s: log %s", payload, log.String())
		}
		r.trial.checked = nil
		r.notePreflight([]byte(payload[:9]))
		if r.trial.checked != nil || !strings.Contains(log.String(), "skipped a preflight answer") {
			t.Errorf("a damaged answer: %+v", r.trial.checked)
		}
	}
}
