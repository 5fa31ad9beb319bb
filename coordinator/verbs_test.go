package coordinator_test

import (
	"context"
	"errors"
	"testing"

	"ddiff/api"
	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// noFaults is the inject function of a process that runs undisturbed.
func noFaults(string) fault { return noFault }

// after returns an inject function that crashes the process after its first write of a name.
func after(name string) func(string) fault {
	return func(write string) fault {
		if write == name {
			return crashAfter
		}
		return noFault
	}
}

// once returns an inject function that calls act before the first write of a name.
func once(name string, act func()) func(string) fault {
	acted := false
	return func(write string) fault {
		if write == name && !acted {
			acted = true
			act()
		}
		return noFault
	}
}

// send sends a command, and returns the channel of its answer.
func (tc *testCluster) send(id string, c command) <-chan api.Appended {
	answers := make(chan api.Appended, 1)
	go func() {
		a, err := tc.command(id, c)
		if err != nil {
			a.Items = -1
		}
		answers <- a
	}()
	return answers
}

// wantState requests a state once. It may be called by other goroutines than that of the test.
func (tc *testCluster) wantState(id string, w record.Wanted) {
	if _, err := recordtest.Want(tc.t.Context(), tc.board, tc.store, id, w); err != nil {
		tc.t.Error(err)
	}
}

// awaitDone waits until a campaign has finished with n items done.
func (tc *testCluster) awaitDone(id string, n int) record.CampaignStatus {
	tc.t.Helper()
	return tc.await(id, "finished", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Phase == record.PhaseFinished &&
			s.Status.Counts == record.Counts{Items: n, Done: n}
	})
}

// A coordinator dies during a retry. The next one publishes every chosen item and answers with their number.
func TestRetrySurvivesCrash(t *testing.T) {
	t.Parallel()
	for _, write := range []string{"store rounds", "item", "store shards"} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 1)
			must(t, tc.write("later.png", []byte("not yet an image")))
			tc.set(func(it item.Item, _ int) error {
				if it.Task == "hdr" {
					return errDead
				}
				return errors.New("disk on fire")
			})
			id := tc.submit("retry", 0)
			p := tc.leadUntilCrash(noFaults)
			tc.work(id)
			tc.awaitPhase(id, record.PhaseFinished)
			p.stop()
			tc.set(nil)
			tc.image("later", 99)
			outcomes := []item.Outcome{item.OutcomeFailed, item.OutcomeDead}
			answers := tc.send(id, command{ID: "one", Verb: board.VerbRetry, Outcomes: outcomes})
			p = tc.leadUntilCrash(after(write))
			<-p.crashed
			p.stop()
			tc.leadUntilCrash(noFaults)
			tc.awaitDone(id, 4)
			// A crash between the rebuilt window and the round leaves new items that no command has chosen.
			least := 4
			if write == "store shards" {
				least = 2
			}
			if a := <-answers; a.Items < least {
				t.Errorf("answer %+v, want one of at least %d items", a, least)
			}
		})
	}
}

// The store refuses the write of a verb. The same request, sent again, is executed again.
func TestVerbAfterFailedWrite(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	id := tc.submit("again", 0)
	p := tc.leadUntilCrash(noFaults)
	tc.awaitPhase(id, record.PhasePreflight)
	failed := false
	p.mu.Lock()
	p.inject = func(write string) fault {
		if write == "store state" && !failed {
			failed = true
			return failWrite
		}
		return noFault
	}
	p.mu.Unlock()
	v := board.Verb{Key: board.NewKey(), Kind: string(record.WantPause), Campaign: id}
	ctx := recordtest.Administrator(t.Context())
	if err := board.Do(ctx, tc.board, v, nil, nil); !errors.Is(err, api.ErrUnexpected) {
		t.Fatalf("pause while the store fails: %v", err)
	}
	must(t, board.Do(ctx, tc.board, v, nil, nil))
	tc.awaitPhase(id, record.PhasePaused)
}

// A campaign is resumed at a moment of its cancellation.
func TestResumeDuringCancel(t *testing.T) {
	t.Parallel()
	for _, write := range []string{"drop consumer", "store state"} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 1)
			id := tc.submit("resume", 0)
			p := tc.leadUntilCrash(noFaults)
			idle := tc.work(id)
			tc.set(func(item.Item, int) error { return errHang })
			tc.awaitPhase(id, record.PhaseRunning)
			p.stop()
			idle()
			tc.set(nil)
			tc.wantState(id, record.WantCancelNow)
			tc.leadUntilCrash(once(write, func() { tc.wantState(id, record.WantRun) }))
			tc.work(id)
			tc.awaitDone(id, 2)
		})
	}
}

// A coordinator dies after it has paused the queue and before it has recorded the pause; then the campaign is resumed.
func TestResumeAfterCrashDuringPause(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	id := tc.submit("pause", 0)
	p := tc.leadUntilCrash(noFaults)
	tc.await(id, "preflight", func(s record.CampaignStatus) bool { return s.Campaign.Phase == record.PhasePreflight })
	p.stop()
	tc.wantState(id, record.WantPause)
	p = tc.leadUntilCrash(after("pause"))
	<-p.crashed
	p.stop()
	tc.wantState(id, record.WantRun)
	tc.leadUntilCrash(noFaults)
	tc.work(id)
	tc.awaitDone(id, 2)
}

// A coordinator dies while a campaign ends: the record says that it has ended only if the status does.
func TestStatusOfEndedCampaignSurvivesCrash(t *testing.T) {
	t.Parallel()
	for _, write := range []string{"drop work", "status", "store state"} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 1)
			id := tc.submit("end", 0)
			ending := false
			p := tc.leadUntilCrash(func(name string) fault {
				if ending = ending || name == "store report"; ending && name == write {
					return crashAfter
				}
				return noFault
			})
			tc.work(id)
			<-p.crashed
			p.stop()
			tc.leadUntilCrash(noFaults)
			tc.awaitDone(id, 2)
		})
	}
}

// A rejected campaign can be cancelled.
func TestCancelRejectedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.check = record.Checked{Failed: "memory", Reason: "too little"}
	id := tc.submit("reject", 0)
	tc.leadUntilCrash(noFaults)
	tc.work(id)
	tc.awaitPhase(id, record.PhaseRejected)
	tc.wantState(id, record.WantCancel)
	s := tc.awaitPhase(id, record.PhaseCancelled)
	if s.Campaign.Reason != "preflight: memory: too little" || s.Status.Counts != (record.Counts{Items: 2, Cancelled: 2}) {
		t.Errorf("reason %q, counts %+v", s.Campaign.Reason, s.Status.Counts)
	}
}

// A new leader that cancels a campaign counts the items that failed under the previous leader.
func TestCancelCountsFailedItems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.set(func(it item.Item, _ int) error {
		if it.Task == "hdr" {
			return errHang
		}
		return errors.New("disk on fire")
	})
	id := tc.submit("count", 0)
	p := tc.leadUntilCrash(noFaults)
	tc.work(id)
	tc.await(id, "one failed item", func(s record.CampaignStatus) bool { return s.Status.Counts.Failed == 1 })
	p.stop()
	tc.wantState(id, record.WantCancelNow)
	tc.leadUntilCrash(noFaults)
	s := tc.awaitPhase(id, record.PhaseCancelled)
	if s.Status.Counts != (record.Counts{Items: 2, Failed: 1, Cancelled: 1}) {
		t.Errorf("counts %+v", s.Status.Counts)
	}
}

// TestResumeBeforePauseIsApplied resumes a campaign after its new leader has paused the queue, and before it has entered
// the phase: the answer to a command brings the changed record.
func TestResumeBeforePauseIsApplied(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	id := tc.submit("early", 0)
	tc.wantState(id, record.WantPause)
	tc.send(id, command{ID: "early", Verb: board.VerbRetry})
	tc.work(id)
	opened := false
	tc.leadWith(func(c *coordinator.Config) {
		open := c.Open
		c.Open = func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
			if !opened {
				opened = true
				tc.wantState(id, record.WantRun)
			}
			return open(ctx, campaign, attempts)
		}
	})
	tc.awaitDone(id, 4)
}

// TestVerbAskedAgain: a door that asks again after the end of a verb gets the same answer.
func TestVerbAskedAgain(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.lead()
	id := tc.submit("again", 1)
	tc.work(id)
	tc.awaitPhase(id, record.PhaseFinished)
	tc.image("more", 7)
	for range 2 {
		a, err := tc.command(id, command{ID: "one-key", Verb: board.VerbAppend})
		if must(t, err); a.Items != 2 {
			t.Errorf("%d appended items, want 2", a.Items)
		}
	}
}
