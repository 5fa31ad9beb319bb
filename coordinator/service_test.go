package coordinator_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/report"
	"ddiff/restore/item"
)

func TestCampaignFinishes(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 5)
	must(t, os.WriteFile(filepath.Join(tc.dir, "broken.png"), []byte("no image"), 0o644))
	id := tc.submit("whole", 2)
	tc.lead()
	tc.work(id)
	s := tc.awaitPhase(id, record.PhaseFinished)
	want := record.Counts{Items: 12, Done: 10, Failed: 2}
	if s.Status.Counts != want || !s.Status.Complete {
		t.Errorf("status %+v, want counts %+v", s.Status, want)
	}
	if s.Status.Counts.Items != 12 || s.Status.Windows != len(tc.windows(id)) || !s.Status.Complete || !s.Campaign.Released {
		t.Errorf("record %+v", s.Campaign)
	}
	if n := tc.results(id); n != 10 {
		t.Errorf("%d results in storage, want 10", n)
	}
	if _, err := tc.store.Get(t.Context(), id+"/"+report.KeyPage); err != nil {
		t.Errorf("report: %v", err)
	}
}

func TestCampaignRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		breakIt func(tc *testCluster)
		want    string
	}{
		{"no dataset", func(tc *testCluster) { must(t, os.RemoveAll(tc.dir)) }, "no dataset there"},
		{"preflight", func(tc *testCluster) { tc.check.Failed, tc.check.Reason = "operator gradient", "it is off by 0.5" }, "preflight: operator gradient: it is off by 0.5"},
		{"no canary done", func(tc *testCluster) { tc.set(func(item.Item, int) error { return errors.New("cannot read") }) }, "none of 2 items could be restored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tc := newTestCluster(t, 4)
			c.breakIt(tc)
			id := tc.submit("bad", 2)
			tc.lead()
			tc.work(id)
			s := tc.awaitPhase(id, record.PhaseRejected)
			if !strings.Contains(s.Campaign.Reason, c.want) {
				t.Errorf("reason %q, want %q in it", s.Campaign.Reason, c.want)
			}
			if n := tc.count(); n > 3 {
				t.Errorf("the worker started %d messages", n)
			}
		})
	}
}

// TestDeadCanaryBesideDone: one item that ends its workers must not stop a campaign.
func TestDeadCanaryBesideDone(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	tc.set(func(it item.Item, _ int) error {
		if it.Index == 0 {
			return errDead
		}
		return nil
	})
	id := tc.submit("poison", 2)
	tc.lead()
	tc.work(id)
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts.Dead != 1 || s.Status.Counts.Done != 5 {
		t.Errorf("%+v, want 1 dead and 5 done", s.Status.Counts)
	}
}

// TestResumeRejectedCampaign: the images were cut when they were read first, and are whole when the campaign is resumed.
func TestResumeRejectedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	digests := map[string]bool{}
	tc.set(func(it item.Item, _ int) error {
		if !digests[it.Image.SHA256] {
			return errors.New("another digest")
		}
		return nil
	})
	whole := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(tc.dir, "*.png"))
	must(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		whole[path], digests[regular.SHA256(data)] = data, true
		must(t, os.WriteFile(path, data[:len(data)/2], 0o644))
	}
	tc.check.Failed, tc.check.Reason = "sources", "unexpected EOF"
	id := tc.submit("again", 1)
	tc.lead()
	tc.work(id)
	tc.awaitPhase(id, record.PhaseRejected)
	for path, data := range whole {
		must(t, os.WriteFile(path, data, 0o644))
	}
	tc.mu.Lock()
	tc.check.Failed = ""
	tc.mu.Unlock()
	must(t, tc.do(string(record.WantRun), id, nil, nil))
	if stored, err := board.Load(t.Context(), tc.store, id); err != nil || stored.Wanted != record.WantRun {
		t.Errorf("the store has %+v, %v", stored, err)
	}
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts.Done != 6 {
		t.Errorf("%+v", s.Status.Counts)
	}
}

func TestCanariesRunFirst(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 6)
	hold := make(chan struct{})
	tc.set(func(item.Item, int) error {
		<-hold
		return nil
	})
	id := tc.submit("canary", 2)
	tc.lead()
	tc.work(id)
	tc.work(id)
	tc.work(id)
	tc.await(id, "canary", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseCanary && s.Status.Counts.Running == 2
	})
	const most = 3 // the preflight and two canary items
	tc.awaitPulls(3, most)
	if n := tc.count(); n != most {
		t.Errorf("the workers started %d messages before the canary items were done, want %d", n, most)
	}
	close(hold)
	tc.awaitPhase(id, record.PhaseFinished)
}

// A leader whose address of the store differs from that of the last leader warns; the same address gives no warning.
func TestOtherStoreIsLogged(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	lead := func(address string, lease time.Duration) (log string) {
		var out strings.Builder
		stop := tc.leadWith(func(c *coordinator.Config) {
			c.StoreAddress, c.AckWait, c.Logger = address, lease, slog.New(slog.NewTextHandler(&out, nil))
		})
		for change, err := range tc.board.Watch(t.Context(), record.KeyCluster) {
			must(t, err)
			var cluster record.Cluster
			if json.Unmarshal(change.Data, &cluster) == nil && cluster.AckWait == lease {
				break
			}
		}
		stop()
		return out.String()
	}
	const warning = "another address of the store"
	for i, address := range []string{"s3://results", "s3://results", "s3://result"} {
		if log := lead(address, time.Duration(i+2)*time.Second); strings.Contains(log, warning) != (i == 2) {
			t.Errorf("leader %d with %s logs %q", i, address, log)
		}
	}
}
