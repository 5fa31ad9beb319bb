package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/board/boardtest"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/storage"
)

var id, must = boardtest.ID, boardtest.Must

// submitted is a campaign on the board, with its queue.
type submitted struct {
	id    string
	rec   *manifest.Campaign
	queue *queue.Queue
}

// archiverOf returns an archiver with a real server and store, and a campaign that is on the board.
func archiverOf(t *testing.T, now *time.Time, log *strings.Builder) (*Archiver, *submitted) {
	t.Helper()
	store, err := storage.NewDir(t.TempDir())
	must(t, err)
	_, nc, kv := boardtest.Start(t)
	open := func(ctx context.Context, campaign string) (*queue.Queue, error) {
		return queue.Open(ctx, nc, queue.Config{
			Campaign: campaign, AckWait: 2 * time.Second, MaxAttempts: 1,
		})
	}
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Tasks = "archived", "/data", []item.Task{{Name: "hdr"}}
	c, _, err := board.Submit(t.Context(), kv, spec, board.Order{}, *now)
	must(t, err)
	q, err := open(t.Context(), c.ID)
	must(t, err)
	return New(Config{
		Board: kv, Store: store, Inspect: open, Running: func(string) bool { return false },
		Tick: time.Second, After: time.Hour, Restart: time.Second, Now: func() time.Time { return *now },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}), &submitted{c.ID, c, q}
}

// finished is a copy of a campaign's record after its end at a time.
func finished(r *submitted, at time.Time) *manifest.Campaign {
	c := *r.rec
	c.Phase, c.Finished = manifest.PhaseFinished, at.UTC()
	c.Last = &manifest.Status{ID: c.ID, Phase: c.Phase, Counts: manifest.Counts{Items: 7, Done: 7}}
	return &c
}

// A campaign that is not on the board returns from the copy of its record.
func TestRestoreOfLostRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	end := now.Add(-time.Hour)
	for name, tt := range map[string]struct {
		state           index.State
		copied, damaged bool // the store has a copy of the record
		err             error
	}{
		"archived":          {state: index.Archived, copied: true},
		"archived, no copy": {state: index.Archived, err: storage.ErrNotFound},
		"lost":              {state: index.Open, copied: true},
		"lost, no copy":     {state: index.Open, err: storage.ErrNotFound},
		"lost, damaged":     {state: index.Open, damaged: true, err: board.ErrDamaged},
		"being deleted":     {state: index.Deleting, copied: true, err: index.ErrDeleting},
		"unknown":           {err: storage.ErrNotFound},
	} {
		var log strings.Builder
		a, r := archiverOf(t, &now, &log)
		store, kv, ctx := a.cfg.Store, a.cfg.Board, t.Context()
		must(t, kv.Delete(ctx, manifest.KeyCampaignPrefix+r.id))
		if tt.state != "" {
			must(t, a.x.Add(ctx, index.Entry{
				ID: r.id, Number: 1, State: tt.state, Output: index.OutputDigest(r.rec.Output),
				Row: index.Row{Phase: manifest.PhaseFinished, Priority: manifest.PriorityNormal},
			}))
		}
		if tt.copied {
			must(t, board.Store(ctx, store, finished(r, end)))
		}
		if tt.damaged {
			must(t, store.Put(ctx, board.StoredKey(r.id), []byte("{")))
		}
		for range 2 { // a second recall changes nothing
			if err := a.recall(ctx, r.id); !errors.Is(err, tt.err) {
				t.Errorf("%s: %v, want %v", name, err, tt.err)
			}
		}
		c, err := board.Read(ctx, kv, r.id)
		if tt.err != nil {
			if !errors.Is(err, queue.ErrNoRecord) {
				t.Errorf("%s: the record is %+v, %v", name, c, err)
			}
			continue
		}
		must(t, err)
		archived := tt.state == index.Archived
		if !c.Finished.Equal(end) || c.Recalled.IsZero() == archived {
			t.Errorf("%s: finished %v, recalled %v", name, c.Finished, c.Recalled)
		}
		s, err := board.Status(ctx, kv, r.id)
		must(t, err)
		if s.Status.Counts.Done != 7 || s.Status.Phase != manifest.PhaseFinished {
			t.Errorf("%s: status %+v", name, s.Status)
		}
		level := "level=WARN"
		if archived {
			level = "level=INFO"
		}
		if strings.Count(log.String(), level+" msg=\"restored a campaign from storage\"") != 1 {
			t.Errorf("%s: log %s", name, log.String())
		}
		if e, err := a.x.Newest(ctx, r.id); err != nil || e.State != index.Open {
			t.Errorf("%s: index entry %+v, %v", name, e, err)
		}
	}
}

// Archiving removes record and status, unless the record has changed.
func TestArchiveLeavesBoard(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	a, r := archiverOf(t, &now, &strings.Builder{})
	ctx, kv := t.Context(), a.cfg.Board
	_, err := board.Update(ctx, kv, r.id, func(c *manifest.Campaign) error {
		*c = *finished(r, now)
		c.Changes = 3
		return nil
	})
	must(t, err)
	c, revision, err := board.ReadRevision(ctx, kv, r.id)
	must(t, err)
	prefixes := []string{manifest.KeyCampaignPrefix, manifest.KeyStatusPrefix}
	must(t, kv.Put(ctx, manifest.KeyStatusPrefix+r.id, []byte("{}")))
	there := func() (found string) {
		t.Helper()
		for _, prefix := range prefixes {
			_, _, err := kv.Get(ctx, prefix+r.id)
			if err == nil {
				found += prefix
			} else if !errors.Is(err, queue.ErrNoRecord) {
				t.Fatal(err)
			}
		}
		return found
	}
	must(t, a.archive(ctx, c, revision+1))
	if got := there(); got != strings.Join(prefixes, "") {
		t.Errorf("a changed record: %s", got)
	}
	must(t, a.archive(ctx, c, revision))
	if got := there(); got != "" {
		t.Errorf("archived: %s", got)
	}
	if stored, err := board.Load(ctx, a.cfg.Store, r.id); err != nil || stored.Changes != 3 {
		t.Errorf("stored record %+v, %v", stored, err)
	}
	if e, err := a.x.Newest(ctx, r.id); err != nil || e.State != index.Archived || e.Row.Counts.Done != 7 {
		t.Errorf("index entry %+v, %v", e, err)
	}
	must(t, a.recall(ctx, r.id))
	if got := there(); got != strings.Join(prefixes, "") {
		t.Errorf("recalled: %s", got)
	}
}

// A list has the archived campaigns.
func TestArchivedCampaigns(t *testing.T) {
	t.Parallel()
	s, err := storage.NewDir(t.TempDir())
	must(t, err)
	x := index.New(s)
	row := index.Row{Phase: manifest.PhaseFinished, Priority: manifest.PriorityLow, Weight: 3}
	for i, state := range []index.State{index.Archived, index.Open, index.Archived, index.Deleting, index.Archived} {
		e := index.Entry{ID: fmt.Sprint("c", i), Number: 1, State: state, Output: "o"}
		if state == index.Archived {
			e.Row = row
		}
		must(t, x.Add(t.Context(), e))
	}
	all, err := List(t.Context(), s)
	var ids []string
	for _, c := range all {
		ids = append(ids, c.Campaign.ID)
	}
	if err != nil || strings.Join(ids, " ") != "c0 c2 c4" {
		t.Errorf("%q, %v", ids, err)
	}
}

// A submitted campaign that is in the archive becomes the archived one; one whose data are deleted is refused. A new one gets no message
// of a deleted campaign with its id.
func TestAdmit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		before, after index.State
		err           error
	}{
		"new":           {after: index.Open},
		"in the index":  {before: index.Open, after: index.Open},
		"archived":      {before: index.Archived, after: index.Open},
		"being deleted": {before: index.Deleting, after: index.Deleting, err: index.ErrDeleting},
	} {
		a, r := archiverOf(t, &now, &strings.Builder{})
		ctx := t.Context()
		if tt.before != "" {
			must(t, a.x.Add(ctx, index.Entry{
				ID: r.id, State: tt.before, Output: index.OutputDigest(r.rec.Output), Row: index.Row{Phase: manifest.PhaseFinished, Priority: manifest.PriorityLow},
			}))
		}
		archived := tt.before == index.Archived
		if archived {
			must(t, board.Store(ctx, a.cfg.Store, finished(r, now)))
		}
		must(t, r.queue.PublishResult(ctx, id(1), 0, []byte(`{"outcome":"failed"}`)))
		adopted := false
		err := a.Admit(ctx, r.rec, func(c *manifest.Campaign) error {
			if adopted = true; !c.Phase.Ended() || c.Recalled.IsZero() {
				t.Errorf("%s: record %+v", name, c)
			}
			return nil
		})
		if !errors.Is(err, tt.err) || adopted != archived {
			t.Errorf("%s: %v, adopted %t", name, err, adopted)
		}
		if e, err := a.x.Newest(ctx, r.id); err != nil || e.State != tt.after {
			t.Errorf("%s: index entry %+v, %v", name, e, err)
		}
		if last, err := r.queue.LastResult(ctx); err != nil || (last > 0) != (archived || tt.err != nil) {
			t.Errorf("%s: result %d, %v", name, last, err)
		}
	}
}

// TestArchiveDue: a wrong clock never keeps a campaign on the board for ever, and never archives an active campaign.
func TestArchiveDue(t *testing.T) {
	a := New(Config{After: time.Hour, Running: func(string) bool { return false }})
	now := time.Now()
	for _, c := range []struct {
		name     string
		campaign manifest.Campaign
		seen     time.Time
		want     bool
	}{
		{"just finished", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(-time.Minute)}, now, false},
		{"finished long ago", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(-2 * time.Hour)}, now, true},
		{"without a time", manifest.Campaign{Phase: manifest.PhaseFinished}, now, true},
		{"recalled", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(-2 * time.Hour), Recalled: now.Add(-time.Minute)}, now, false},
		{"finished in the future, seen just now", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(1000 * time.Hour)}, now, false},
		{"finished in the future, seen long ago", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(1000 * time.Hour)}, now.Add(-2 * time.Hour), true},
		{"cancelled", manifest.Campaign{Phase: manifest.PhaseCancelled, Wanted: manifest.WantCancel}, now, true},
		{"resumed", manifest.Campaign{Phase: manifest.PhaseCancelled, Wanted: manifest.WantRun}, now, false},
		{"running", manifest.Campaign{Phase: manifest.PhaseRunning, Finished: now.Add(-2 * time.Hour)}, now, false},
		{"with a command", manifest.Campaign{Phase: manifest.PhaseFinished, Commands: []manifest.Command{{ID: "1"}}}, now, false},
	} {
		if got := a.due(&c.campaign, sighting{at: c.seen}, now); got != c.want {
			t.Errorf("%s: due %v, want %v", c.name, got, c.want)
		}
	}
}

// A campaign that is archived while a scan has its record stays archived: otherwise its deletion would be refused as that of a resumed one.
func TestArchivedDuringScan(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, act := range map[string]func(a *Archiver, listed queue.Change, id string) error{
		"enter":   func(a *Archiver, listed queue.Change, _ string) error { return a.scanRecord(t.Context(), listed) },
		"restore": func(a *Archiver, _ queue.Change, id string) error { return a.restoreOpen(t.Context(), id) },
	} {
		a, r := archiverOf(t, &now, &strings.Builder{})
		ctx, kv := t.Context(), a.cfg.Board
		_, err := board.Update(ctx, kv, r.id, func(c *manifest.Campaign) error {
			*c = *finished(r, now)
			return nil
		})
		must(t, err)
		records, err := board.Records(ctx, kv, manifest.KeyCampaignPrefix)
		must(t, err)
		listed := records[manifest.KeyCampaignPrefix+r.id]
		a.seen[listed.Key] = sighting{revision: listed.Revision, at: now, compared: true}
		must(t, a.archiveNow(ctx, r.id))
		must(t, act(a, listed, r.id))
		if e, err := a.x.Newest(ctx, r.id); err != nil || e.State != index.Archived {
			t.Errorf("%s: index entry %+v, %v", name, e, err)
		}
		if _, err := board.Read(ctx, kv, r.id); !errors.Is(err, queue.ErrNoRecord) {
			t.Errorf("%s: the campaign is on the board again: %v", name, err)
		}
	}
}
