package coordinator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/manifest"
)

func (y *yard) want(id string, w manifest.Wanted) {
	y.t.Helper()
	for range 2 { // the second time changes nothing
		_, err := coordinator.Want(y.t.Context(), y.board, id, w)
		must(y.t, err)
	}
}

func (y *yard) command(id string, c manifest.Command) (manifest.Answer, error) {
	ctx, cancel := context.WithTimeout(y.t.Context(), patience)
	defer cancel()
	return coordinator.Command(ctx, y.board, id, c)
}

func TestPauseAndResume(t *testing.T) {
	y := newYard(t, 10)
	gate := make(chan struct{}, 100)
	y.set(func(manifest.Item, int) error {
		<-gate
		return nil
	})
	id := y.submit("pause", 0)
	y.lead()
	idle := y.work(id)
	gate <- struct{}{}
	y.await(id, "one item done", func(s coordinator.CampaignStatus) bool { return s.Status.Counts.Done == 1 })
	y.want(id, manifest.WantPause)
	y.awaitPhase(id, manifest.PhasePaused)
	for range 50 {
		gate <- struct{}{}
	}
	time.Sleep(time.Second)
	s, err := coordinator.Status(t.Context(), y.board, id)
	must(t, err)
	if n := s.Status.Counts.Done; n > 2 {
		t.Errorf("%d items were done in a pause", n)
	}
	y.want(id, manifest.WantRun)
	y.awaitPhase(id, manifest.PhaseFinished)
	idle()
}

func TestCancelAndResume(t *testing.T) {
	for _, w := range []manifest.Wanted{manifest.WantCancel, manifest.WantCancelNow} {
		t.Run(string(w), func(t *testing.T) {
			y := newYard(t, 10)
			gate := make(chan struct{}, 100)
			y.set(func(manifest.Item, int) error {
				<-gate
				return nil
			})
			id := y.submit("cancel", 0)
			y.lead()
			idle := y.work(id)
			gate <- struct{}{}
			y.await(id, "one item done", func(s coordinator.CampaignStatus) bool {
				return s.Status.Counts.Done == 1 && s.Status.Counts.Running == 1
			})
			y.want(id, w)
			gate <- struct{}{} // the one under way ends
			s := y.awaitPhase(id, manifest.PhaseCancelled)
			n := s.Status.Counts
			if n.Items != 20 || n.Done+n.Cancelled != 20 || n.Done > 2 || n.Pending+n.Running != 0 {
				t.Errorf("%+v", n)
			}
			for range 50 {
				gate <- struct{}{}
			}
			y.want(id, manifest.WantRun)
			if s := y.awaitPhase(id, manifest.PhaseFinished); s.Status.Counts != (manifest.Counts{Items: 20, Done: 20}) {
				t.Errorf("%+v", s.Status.Counts)
			}
			idle()
		})
	}
}

func TestRetryTakesBackWhatMatches(t *testing.T) {
	y := newYard(t, 4)
	must(t, os.WriteFile(filepath.Join(y.dir, "later.png"), []byte("not yet an image"), 0o644))
	y.set(func(it manifest.Item, _ int) error {
		switch {
		case it.Name == "image000":
			return errors.New("disk on fire")
		case it.Name == "image001" && it.Task == "hdr":
			return errDead
		}
		return nil
	})
	id := y.submit("retry", 0)
	y.lead()
	y.work(id)
	s := y.awaitPhase(id, manifest.PhaseFinished)
	if want := (manifest.Counts{Items: 10, Done: 5, Failed: 4, Dead: 1}); s.Status.Counts != want {
		t.Fatalf("%+v, want %+v", s.Status.Counts, want)
	}
	y.set(nil)

	a, err := y.command(id, manifest.Command{ID: "one", Verb: manifest.CommandRetry, Outcomes: []manifest.Outcome{manifest.OutcomeFailed}, Where: "on fire"})
	must(t, err)
	if a.Items != 2 {
		t.Errorf("%d items are tried again, want 2", a.Items)
	}
	y.await(id, "the items done", func(s coordinator.CampaignStatus) bool {
		return s.Campaign.Phase == manifest.PhaseFinished && s.Status.Counts == manifest.Counts{Items: 10, Done: 7, Failed: 2, Dead: 1}
	})
	if again, err := y.command(id, manifest.Command{ID: "one", Verb: manifest.CommandRetry}); err != nil || again != a {
		t.Errorf("the same command again: %+v, %v", again, err)
	}

	a, err = y.command(id, manifest.Command{Verb: manifest.CommandRetry, Outcomes: []manifest.Outcome{manifest.OutcomeDead}})
	must(t, err)
	if a.Items != 1 {
		t.Errorf("%d dead items are tried again, want 1", a.Items)
	}
	y.await(id, "the dead one done", func(s coordinator.CampaignStatus) bool {
		return s.Campaign.Phase == manifest.PhaseFinished && s.Status.Counts == manifest.Counts{Items: 10, Done: 8, Failed: 2}
	})
	if n := len(y.letters(id)); n != 0 {
		t.Errorf("%d dead letters are left", n)
	}

	y.image("later", 99)
	a, err = y.command(id, manifest.Command{Verb: manifest.CommandRetry, Outcomes: []manifest.Outcome{manifest.OutcomeFailed}})
	must(t, err)
	if a.Items != 2 {
		t.Errorf("%d items of the mended row are tried, want 2", a.Items)
	}
	y.await(id, "all done", func(s coordinator.CampaignStatus) bool {
		return s.Campaign.Phase == manifest.PhaseFinished && s.Status.Counts == manifest.Counts{Items: 10, Done: 10}
	})
}

// What was taken back stays so for the coordinators that follow.
func TestRetryOutlivesItsCoordinator(t *testing.T) {
	y := newYard(t, 2)
	y.set(func(manifest.Item, int) error { return errors.New("no light") })
	id := y.submit("outlive", 0)
	stop := y.lead()
	idle := y.work(id)
	y.awaitPhase(id, manifest.PhaseFinished)
	idle()
	a, err := y.command(id, manifest.Command{Verb: manifest.CommandRetry, Outcomes: []manifest.Outcome{manifest.OutcomeFailed}})
	must(t, err)
	stop()
	if a.Items != 4 {
		t.Errorf("%d items, want 4", a.Items)
	}
	y.set(nil)
	y.lead()
	y.work(id)
	y.await(id, "all done", func(s coordinator.CampaignStatus) bool {
		return s.Campaign.Phase == manifest.PhaseFinished && s.Status.Counts == manifest.Counts{Items: 4, Done: 4}
	})
}

func TestReconcilePublishesTheDifference(t *testing.T) {
	y := newYard(t, 5)
	gate := make(chan struct{}, 100)
	y.set(func(manifest.Item, int) error {
		<-gate
		return nil
	})
	id := y.submit("reconcile", 0)
	y.lead()
	idle := y.work(id)
	for range 3 {
		gate <- struct{}{}
	}
	y.await(id, "three items done", func(s coordinator.CampaignStatus) bool { return s.Status.Counts.Done == 3 })
	a, err := y.command(id, manifest.Command{Verb: manifest.CommandReconcile})
	must(t, err)
	if a.Items != 7 {
		t.Errorf("%d items were published again, want 7", a.Items)
	}
	for range 50 {
		gate <- struct{}{}
	}
	if s := y.awaitPhase(id, manifest.PhaseFinished); s.Status.Counts.Done != 10 {
		t.Errorf("%+v", s.Status.Counts)
	}
	idle()
}

func TestCommandsThatCannotBe(t *testing.T) {
	y := newYard(t, 1)
	y.check.Failed, y.check.Reason = "shapes", "no"
	id := y.submit("cannot", 0)
	y.lead()
	y.work(id)
	y.awaitPhase(id, manifest.PhaseRejected)
	if _, err := y.command(id, manifest.Command{Verb: manifest.CommandReconcile}); !errors.Is(err, coordinator.ErrRefused) || !strings.Contains(err.Error(), "resume") {
		t.Errorf("reconcile of a rejected campaign: %v", err)
	}
	if _, err := y.command(id, manifest.Command{Verb: "fly"}); !errors.Is(err, coordinator.ErrRefused) {
		t.Errorf("unknown command: %v", err)
	}
}
