package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

var id, must = boardtest.ID, boardtest.Must

// submitted is a campaign on the board, with its queue.
type submitted struct {
	id    string
	rec   *record.Campaign
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
	c, _, err := recordtest.Submit(t.Context(), kv, store, spec, board.Order{}, *now)
	must(t, err)
	q, err := open(t.Context(), c.ID)
	must(t, err)
	return New(Config{
		Board: kv, Store: store, Writer: board.NewWriter(kv, store), Inspect: open, Running: func(string) bool { return false },
		Tick: time.Second, After: time.Hour, Restart: time.Second, Now: func() time.Time { return *now },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}), &submitted{c.ID, c, q}
}

func yes(*record.Campaign) error { return nil }

// finished is a copy of a campaign's record after its end at a time.
func finished(r *submitted, at time.Time) *record.Campaign {
	c := *r.rec
	c.Phase, c.Finished = record.PhaseFinished, at.UTC()
	c.Last = &record.Status{ID: c.ID, Phase: c.Phase, Counts: record.Counts{Items: 7, Done: 7}}
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
		must(t, kv.Delete(ctx, record.KeyCampaignPrefix+r.id))
		if tt.state != "" {
			must(t, a.x.Add(ctx, index.Entry{
				ID: r.id, Number: 1, State: tt.state, Output: index.OutputDigest(r.rec.Output),
				Row: index.Row{Phase: record.PhaseFinished, Priority: record.PriorityNormal},
			}))
		}
		must(t, store.Delete(ctx, board.StoredKey(r.id)))
		if tt.copied {
			must(t, a.cfg.Writer.Create(ctx, finished(r, end)))
			must(t, kv.Delete(ctx, record.KeyCampaignPrefix+r.id))
		}
		if tt.damaged {
			must(t, store.Put(ctx, board.StoredKey(r.id), []byte("{")))
		}
		for range 2 { // a second recall changes nothing
			if err := a.Recall(ctx, r.id, yes, yes); !errors.Is(err, tt.err) {
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
		if !c.Finished.Equal(end) || a.back[r.id].IsZero() == archived {
			t.Errorf("%s: finished %v, back %v", name, c.Finished, a.back[r.id])
		}
		s, err := board.Status(ctx, kv, r.id)
		must(t, err)
		if s.Status.Counts.Done != 7 || s.Status.Phase != record.PhaseFinished {
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
	_, err := recordtest.Update(ctx, kv, a.cfg.Store, r.id, func(c *record.Campaign) error {
		*c = *finished(r, now)
		c.Changes = 3
		return nil
	})
	must(t, err)
	c, revision, err := board.ReadRevision(ctx, kv, r.id)
	must(t, err)
	prefixes := []string{record.KeyCampaignPrefix, record.KeyStatusPrefix}
	must(t, kv.Put(ctx, record.KeyStatusPrefix+r.id, []byte("{}")))
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
	must(t, a.Recall(ctx, r.id, yes, yes))
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
	row := index.Row{Phase: record.PhaseFinished, Priority: record.PriorityLow, Weight: 3}
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
// of a deleted campaign with its id, also if a suspended leader has stored that one's record after its deletion.
func TestSubmit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		before, after index.State
		stored        bool // the store has the record
		buried        bool
		created       bool
		err           error
	}{
		"new":           {after: index.Open, created: true},
		"late":          {after: index.Open, stored: true, buried: true, created: true},
		"in the index":  {before: index.Open, after: index.Open, created: true},
		"known":         {before: index.Open, after: index.Open, stored: true},
		"archived":      {before: index.Archived, after: index.Open, stored: true},
		"being deleted": {before: index.Deleting, after: index.Deleting, stored: true, err: index.ErrDeleting},
	} {
		a, r := archiverOf(t, &now, &strings.Builder{})
		ctx := t.Context()
		must(t, a.cfg.Board.Delete(ctx, record.KeyCampaignPrefix+r.id))
		for info, err := range a.cfg.Store.List(ctx, "") {
			must(t, err)
			must(t, a.cfg.Store.Delete(ctx, info.Key))
		}
		if tt.before != "" {
			must(t, a.x.Add(ctx, index.Entry{
				ID: r.id, State: tt.before, Output: index.OutputDigest(r.rec.Output), Row: index.Row{Phase: record.PhaseFinished, Priority: record.PriorityLow},
			}))
		}
		if tt.stored {
			must(t, a.cfg.Writer.Create(ctx, finished(r, now)))
			must(t, a.cfg.Board.Delete(ctx, record.KeyCampaignPrefix+r.id))
		}
		if tt.buried {
			must(t, a.x.Bury(ctx, r.rec))
		}
		must(t, r.queue.PublishResult(ctx, id(1), 0, []byte(`{"outcome":"failed"}`)))
		again := *r.rec
		again.Submitted = now.Add(time.Minute)
		c, created, back, err := a.Submit(ctx, &again)
		if !errors.Is(err, tt.err) || created != tt.created || back.IsZero() == (tt.before == index.Archived) {
			t.Errorf("%s: %v, created %t, back %v", name, err, created, back)
		}
		if err == nil && c.Submitted.Equal(again.Submitted) != tt.created {
			t.Errorf("%s: the campaign is that of %v", name, c.Submitted)
		}
		if e, err := a.x.Newest(ctx, r.id); err != nil || e.State != tt.after {
			t.Errorf("%s: index entry %+v, %v", name, e, err)
		}
		if last, err := r.queue.LastResult(ctx); err != nil || (last == 0) != tt.created {
			t.Errorf("%s: result %d, %v", name, last, err)
		}
	}
}

// TestArchiveDue: a wrong clock never keeps a campaign on the board for ever, and never archives an active campaign.
func TestArchiveDue(t *testing.T) {
	_, _, kv := boardtest.Start(t)
	a := New(Config{Board: kv, After: time.Hour, Running: func(string) bool { return false }})
	now := time.Now()
	a.back["back"] = now.Add(-time.Minute)
	for _, c := range []struct {
		name     string
		campaign record.Campaign
		seen     time.Time
		want     bool
	}{
		{"just finished", record.Campaign{Phase: record.PhaseFinished, Finished: now.Add(-time.Minute)}, now, false},
		{"finished long ago", record.Campaign{Phase: record.PhaseFinished, Finished: now.Add(-2 * time.Hour)}, now, true},
		{"without a time", record.Campaign{Phase: record.PhaseFinished}, now, true},
		{"recalled", record.Campaign{ID: "back", Phase: record.PhaseFinished, Finished: now.Add(-2 * time.Hour)}, now, false},
		{"finished in the future, seen just now", record.Campaign{Phase: record.PhaseFinished, Finished: now.Add(1000 * time.Hour)}, now, false},
		{"finished in the future, seen long ago", record.Campaign{Phase: record.PhaseFinished, Finished: now.Add(1000 * time.Hour)}, now.Add(-2 * time.Hour), true},
		{"cancelled", record.Campaign{Phase: record.PhaseCancelled, Wanted: record.WantCancel}, now, true},
		{"resumed", record.Campaign{Phase: record.PhaseCancelled, Wanted: record.WantRun}, now, false},
		{"running", record.Campaign{Phase: record.PhaseRunning, Finished: now.Add(-2 * time.Hour)}, now, false},
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
		_, err := recordtest.Update(ctx, kv, a.cfg.Store, r.id, func(c *record.Campaign) error {
			*c = *finished(r, now)
			return nil
		})
		must(t, err)
		records, err := board.Records(ctx, kv, record.KeyCampaignPrefix)
		must(t, err)
		listed := records[record.KeyCampaignPrefix+r.id]
		a.seen[listed.Key] = sighting{revision: listed.Revision, at: now}
		_, err = a.cfg.Writer.Newest(ctx, r.id)
		must(t, err)
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
