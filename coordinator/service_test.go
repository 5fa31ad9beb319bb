package coordinator_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/coordinator/report"
	"ddiff/manifest"
)

func TestCampaignComesToItsEnd(t *testing.T) {
	y := newYard(t, 5)
	must(t, os.WriteFile(filepath.Join(y.dir, "broken.png"), []byte("no image"), 0o644))
	id := y.submit("whole", 2)
	y.lead()
	y.work(id)
	s := y.awaitPhase(id, manifest.PhaseFinished)
	want := manifest.Counts{Items: 12, Done: 10, Failed: 2}
	if s.Status.Counts != want || !s.Status.Complete {
		t.Errorf("status %+v, want counts %+v", s.Status, want)
	}
	if s.Campaign.Items != 12 || s.Campaign.Rows != 6 || !s.Campaign.Complete || !s.Campaign.Released {
		t.Errorf("record %+v", s.Campaign)
	}
	if n := y.results(id); n != 10 {
		t.Errorf("%d results in storage, want 10", n)
	}
	if _, err := y.store.Get(t.Context(), id+"/"+report.KeyPage); err != nil {
		t.Errorf("report: %v", err)
	}
}

func TestSubmittingTwiceIsSubmittingOnce(t *testing.T) {
	y := newYard(t, 1)
	id := y.submit("once", 0)
	c, created, err := coordinator.Submit(t.Context(), y.board, y.spec("once"), coordinator.Order{}, time.Now())
	must(t, err)
	if created || c.ID != id {
		t.Errorf("created %v, id %s", created, c.ID)
	}
}

func TestCampaignIsRejectedWithTheReason(t *testing.T) {
	for _, c := range []struct {
		name   string
		break_ func(y *yard)
		want   string
	}{
		{"no dataset", func(y *yard) { must(t, os.RemoveAll(y.dir)) }, "no dataset there"},
		{"preflight", func(y *yard) { y.check.Failed, y.check.Reason = "operator gradient", "it is off by 0.5" }, "preflight: operator gradient: it is off by 0.5"},
		{"dead canary", func(y *yard) { y.set(func(manifest.Item, int) error { return errDead }) }, "canary: item"},
		{"no canary done", func(y *yard) { y.set(func(manifest.Item, int) error { return errors.New("cannot read") }) }, "none of 2 items could be restored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t, 4)
			c.break_(y)
			id := y.submit("bad", 2)
			y.lead()
			y.work(id)
			s := y.awaitPhase(id, manifest.PhaseRejected)
			if !strings.Contains(s.Campaign.Reason, c.want) {
				t.Errorf("reason %q, want %q in it", s.Campaign.Reason, c.want)
			}
			if n := len(y.begun); n > 3 {
				t.Errorf("%d items were handed out", n)
			}
		})
	}
}

func TestRejectedCampaignIsTakenUpAnew(t *testing.T) {
	y := newYard(t, 3)
	y.check.Failed, y.check.Reason = "memory", "too little"
	id := y.submit("again", 1)
	y.lead()
	y.work(id)
	y.awaitPhase(id, manifest.PhaseRejected)
	y.mu.Lock()
	y.check.Failed = ""
	y.mu.Unlock()
	_, err := coordinator.Want(t.Context(), y.board, id, manifest.WantRun)
	must(t, err)
	if s := y.awaitPhase(id, manifest.PhaseFinished); s.Status.Counts.Done != 6 {
		t.Errorf("%+v", s.Status.Counts)
	}
}

func TestCanariesRunBeforeTheOthers(t *testing.T) {
	y := newYard(t, 6)
	hold := make(chan struct{})
	y.set(func(manifest.Item, int) error {
		<-hold
		return nil
	})
	id := y.submit("canary", 2)
	y.lead()
	y.work(id)
	y.work(id)
	y.work(id)
	y.await(id, "canary", func(s coordinator.CampaignStatus) bool {
		return s.Campaign.Phase == manifest.PhaseCanary && s.Status.Counts.Running == 2
	})
	time.Sleep(300 * time.Millisecond)
	y.mu.Lock()
	n := len(y.begun)
	y.mu.Unlock()
	if n != 3 { // the preflight and two items
		t.Errorf("%d items were begun before the canaries were done", n)
	}
	close(hold)
	y.awaitPhase(id, manifest.PhaseFinished)
}
