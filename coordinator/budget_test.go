package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// submitWith submits a campaign with a budget.
func (tc *testCluster) submitWith(name, owner string, limits manifest.Budget) string {
	tc.t.Helper()
	spec := tc.spec(name)
	spec.Budget = limits
	c, _, err := recordtest.Submit(tc.t.Context(), tc.board, tc.store, spec, board.Order{Owner: owner}, time.Now())
	must(tc.t, err)
	return c.ID
}

func (tc *testCluster) awaitReason(id, text string) {
	tc.t.Helper()
	tc.await(id, "a pause because of "+text, func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhasePaused && strings.Contains(s.Status.Reason, text)
	})
}

// A campaign warns, pauses when its device-seconds are used, also after a takeover, and continues after its budget is raised.
func TestBudgetOfSeconds(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	tc.seconds, tc.pool = 4, "spot"
	gate := tc.gated()
	lead := func() func() {
		return tc.leadWith(func(c *coordinator.Config) { c.Prices, c.Fold = coordinator.Prices{"": 9, "spot": 0.5}, 1 })
	}
	id := tc.submitWith("seconds", "", manifest.Budget{Seconds: 10, Soft: 0.5})
	stop := lead()
	tc.work(id)
	permit(gate, 2)
	used := func(seconds float64) func(s record.CampaignStatus) bool {
		return func(s record.CampaignStatus) bool {
			u := s.Status.Uses
			return s.Status.Seconds == seconds && s.Status.Cost == seconds/2 && len(u) == 1 && u[0].Pool == "spot" && u[0].Cost == seconds/2
		}
	}
	tc.await(id, "a warning", func(s record.CampaignStatus) bool {
		return used(8)(s) && strings.Contains(s.Status.Warning, "nearly used: 8 of 10 device-seconds")
	})
	stop()
	must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id)) // the next leader knows the ledger only
	lead()
	tc.await(id, "the same use", used(8))
	permit(gate, 1)
	tc.awaitReason(id, "12 of 10 device-seconds")
	if _, err := recordtest.Want(t.Context(), tc.board, tc.store, id, record.WantRun); err != nil {
		t.Fatal(err)
	}
	tc.await(id, "another pause", func(s record.CampaignStatus) bool {
		return s.Campaign.Wanted == record.WantPause && s.Campaign.Phase == record.PhasePaused && s.Campaign.Reason != ""
	})
	_, err := recordtest.SetBudget(t.Context(), tc.board, tc.store, id, manifest.Budget{Seconds: 100})
	must(t, err)
	close(gate)
	tc.want(id, record.WantRun)
	tc.awaitPhase(id, record.PhaseFinished)
	s := tc.await(id, "all seconds", used(24))
	if s.Status.Counts.Done != 6 || s.Status.Warning != "" || s.Campaign.Reason != "" {
		t.Errorf("%+v, reason %q", s.Status, s.Campaign.Reason)
	}
}

// A retry costs time too; a campaign whose last items have used the budget finishes.
func TestBudgetCountsRetries(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.seconds = 4
	tc.set(func(item.Item, int) error { return errDead })
	id := tc.submitWith("retries", "", manifest.Budget{Seconds: 8})
	stop := tc.lead()
	tc.work(id)
	tc.awaitPhase(id, record.PhaseFinished)
	tc.set(nil)
	_, err := recordtest.SetBudget(t.Context(), tc.board, tc.store, id, manifest.Budget{Seconds: 20})
	if err == nil || !strings.Contains(err.Error(), "has finished") {
		t.Errorf("the budget of a finished campaign was changed: %v", err)
	}
	_, err = tc.command(id, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeDead}})
	must(t, err)
	tc.awaitReason(id, "8 of 8 device-seconds")
	_, err = recordtest.SetBudget(t.Context(), tc.board, tc.store, id, manifest.Budget{Seconds: 16})
	must(t, err)
	tc.want(id, record.WantRun)
	done := func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 2 && s.Status.Seconds == 16 }
	tc.await(id, "two items of four attempts", done)
	stop()
	must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id))
	tc.lead()
	tc.await(id, "the same after a takeover", done)
	tc.awaitPhase(id, record.PhaseFinished)
}

// The number of items is known before most of them run.
func TestBudgetOfItems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	id := tc.submitWith("items", "", manifest.Budget{Items: 3})
	tc.lead()
	tc.work(id)
	tc.awaitReason(id, "4 of 3 items")
	_, err := recordtest.SetBudget(t.Context(), tc.board, tc.store, id, manifest.Budget{Items: 4})
	must(t, err)
	tc.want(id, record.WantRun)
	tc.awaitPhase(id, record.PhaseFinished)
}

// All campaigns of an owner count, deleted ones too; a campaign above the cap waits, also after a takeover, and goes on with a higher cap or in
// the next month. Other owners are free.
func TestCapOfOwner(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.seconds = 4
	caps, later := coordinator.Caps{"ann": 7, "*": 1e6}, time.Duration(0)
	lead := func() func() {
		return tc.leadWith(func(c *coordinator.Config) {
			c.Prices, c.Caps, c.Now = coordinator.Prices{"": 1}, caps, func() time.Time { return time.Now().Add(later) }
			c.ArchiveAfter = 1000 * time.Hour // also 40 days later
		})
	}
	run := func(name, owner string) string {
		t.Helper()
		id := tc.submitWith(name, owner, manifest.Budget{})
		tc.work(id)
		return id
	}
	stop := lead()
	first := run("first", "ann")
	tc.awaitPhase(first, record.PhaseFinished)
	stop()
	for _, key := range []string{record.KeyCampaignPrefix, record.KeyStatusPrefix} {
		must(t, tc.board.Delete(t.Context(), key+first))
	}
	stop = lead()
	for _, owner := range []string{"", "bob"} {
		tc.awaitPhase(run("free"+owner, owner), record.PhaseFinished)
	}
	second, third := run("second", "ann"), run("third", "ann")
	tc.awaitReason(second, "limit reached: the campaigns of ann cost 8 of 7 in "+record.MonthOf(time.Now()))
	tc.awaitReason(third, "or after a higher coordinator --cap")
	before, err := board.Read(t.Context(), tc.board, second)
	must(t, err)
	stop()
	stop = lead()
	tc.decide(second, record.WantPause)
	tc.decide(second, record.WantRun)
	tc.awaitReason(second, "8 of 7")
	after, err := board.Read(t.Context(), tc.board, second)
	must(t, err)
	if after.Changes != before.Changes || after.Wanted != record.WantRun {
		t.Errorf("%d changes of the phase, %d before the takeover; wanted %s", after.Changes, before.Changes, after.Wanted)
	}
	stop()
	caps = coordinator.Caps{"ann": 15}
	stop = lead()
	tc.await(second, "one of two campaigns", func(record.CampaignStatus) bool {
		a, err := board.Read(t.Context(), tc.board, second)
		must(t, err)
		b, err := board.Read(t.Context(), tc.board, third)
		must(t, err)
		return a.Phase == record.PhaseFinished || b.Phase == record.PhaseFinished
	})
	stop()
	caps, later = coordinator.Caps{"ann": 7}, 40*24*time.Hour
	lead()
	tc.awaitPhase(second, record.PhaseFinished)
	tc.awaitPhase(third, record.PhaseFinished)
}

// No item of a campaign that waits for the cap of its owner is delivered while its queue is filled again.
func TestReconcileAboveCap(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 300)
	tc.seconds = 4
	gate := tc.gated()
	tc.leadWith(func(c *coordinator.Config) { c.Prices, c.Caps = coordinator.Prices{"": 1}, coordinator.Caps{"ann": 3} })
	id := tc.submitWith("held", "ann", manifest.Budget{})
	tc.work(id)
	permit(gate, 1)
	tc.awaitReason(id, "limit reached")
	permit(gate, 1) // the worker may have leased another item before
	tc.awaitPulls(2, tc.count()+1)
	before := tc.count()
	for range 5 {
		_, err := tc.command(id, command{Verb: board.VerbReconcile})
		must(t, err)
		tc.awaitPulls(1, before)
	}
	if n := tc.count(); n != before {
		t.Errorf("workers have started %d items more", n-before)
	}
	close(gate)
}

// A cost needs a price, also after a change of the leader or of the budget.
func TestBudgetOfCostWithoutPrice(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	gate := tc.gated()
	id := tc.submitWith("cost", "", manifest.Budget{Cost: 3})
	stop := tc.leadWith(func(c *coordinator.Config) { c.Prices = coordinator.Prices{"spot": 0.5} })
	tc.work(id)
	permit(gate, 1)
	tc.await(id, "an item", func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 1 })
	stop()
	tc.lead()
	tc.awaitReason(id, "--price")
	_, err := recordtest.SetBudget(t.Context(), tc.board, tc.store, id, manifest.Budget{})
	must(t, err)
	tc.want(id, record.WantRun)
	close(gate)
	tc.awaitPhase(id, record.PhaseFinished)
}

// The budget of a cancelled campaign is in the store at once, and the campaign stays as it is.
func TestBudgetOfEndedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.lead()
	id := tc.submitWith("ended", "", manifest.Budget{Seconds: 10})
	tc.awaitPhase(id, record.PhasePreflight)
	tc.decide(id, record.WantCancel)
	tc.awaitPhase(id, record.PhaseCancelled)
	limits := manifest.Budget{Seconds: 77}
	c, err := recordtest.SetBudget(t.Context(), tc.board, tc.store, id, limits)
	must(t, err)
	stored, err := board.Load(t.Context(), tc.store, id)
	must(t, err)
	if stored.Spec.Budget != limits || stored.Phase != record.PhaseCancelled || board.Active(c) {
		t.Errorf("the store has %+v of a campaign that is %s, and %s on the board", stored.Spec.Budget, stored.Phase, c.Phase)
	}
}
