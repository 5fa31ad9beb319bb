package archive

import (
	"context"
	"encoding/json"
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
	spec.Name, spec.Dataset.Path, spec.Tasks = "archived", "/data", []manifest.TaskSpec{{Name: "hdr"}}
	c, _, err := board.Submit(t.Context(), kv, spec, board.Order{}, *now)
	must(t, err)
	q, err := open(t.Context(), c.ID)
	must(t, err)
	return New(Config{
		Board: kv, Store: store, Inspect: open, Running: func(string) bool { return false },
		Recount: func(context.Context, *manifest.Campaign) error { return nil },
		Tick:    time.Second, After: time.Hour, Restart: time.Second, Now: func() time.Time { return *now },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}), &submitted{c.ID, c, q}
}

// finished is a copy of a campaign's record after its end at a time.
func finished(r *submitted, at time.Time) *manifest.Campaign {
	c := *r.rec
	c.Phase, c.Finished = manifest.PhaseFinished, at.UTC()
	return &c
}

// publishOutcome publishes an outcome of an item in a round.
func publishOutcome(t *testing.T, r *submitted, id string, round int, payload string) {
	t.Helper()
	must(t, r.queue.PublishResult(t.Context(), id, round, []byte(payload)))
}

// A campaign that the board has lost returns from its archive, or from the copy of its record if that is of a later end.
func TestRestoreOfLostRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	first, second := now.Add(-2*time.Hour), now.Add(-time.Hour)
	for name, tt := range map[string]struct {
		copied, archived time.Time // ends; zero: there is none
		open             bool      // the index has the campaign as open
		damaged          bool      // the copy is
		deleting         bool
		want             time.Time // the end of the restored record
		fromArchive      bool
		err              error
	}{
		"archived":                      {archived: first, want: first, fromArchive: true},
		"archived, another copy":        {archived: first, copied: second, want: first, fromArchive: true},
		"archived, but no archive":      {copied: second, err: storage.ErrNotFound},
		"open again, equal copy":        {archived: first, copied: first, open: true, want: first, fromArchive: true},
		"open again, later copy":        {archived: first, copied: second, open: true, want: second},
		"open again, no copy":           {archived: first, open: true, want: first, fromArchive: true},
		"open again, damaged copy":      {archived: first, copied: second, damaged: true, open: true, want: first, fromArchive: true},
		"open, never archived":          {copied: second, open: true, want: second},
		"open, never archived, no copy": {open: true, err: storage.ErrNotFound},
		"open, damaged copy":            {copied: second, damaged: true, open: true, err: board.ErrDamaged},
		"deleting":                      {archived: first, copied: first, deleting: true, err: index.ErrDeleting},
	} {
		var log strings.Builder
		a, r := archiverOf(t, &now, &log)
		store, kv, ctx := a.cfg.Store, a.cfg.Board, t.Context()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		check(kv.Delete(ctx, manifest.KeyCampaignPrefix+r.id))
		if !tt.archived.IsZero() {
			file := &archiveFile{archiveHeader: archiveHeader{Schema: archiveSchema, Campaign: *finished(r, tt.archived)}}
			file.Status = manifest.Status{ID: r.id, Phase: manifest.PhaseFinished, Counts: manifest.Counts{Items: 7}}
			file.failures = []failure{{ID: id(1), Outcome: manifest.OutcomeFailed, Reason: "no light"}}
			check(a.storeArchive(ctx, file))
		} else if !tt.open {
			check(a.x.Add(ctx, index.Entry{ID: r.id, Number: 1, State: index.Archived, Output: index.OutputDigest(r.rec.Output)}))
		}
		if !tt.copied.IsZero() {
			check(board.Store(ctx, store, finished(r, tt.copied)))
		}
		if tt.damaged {
			check(store.Put(ctx, board.StoredKey(r.id), []byte("{")))
		}
		if tt.open {
			check(a.x.Open(ctx, r.rec))
		}
		if tt.deleting {
			check(a.x.Add(ctx, index.Entry{ID: r.id, Number: 9, State: index.Deleting, Output: index.OutputDigest(r.rec.Output)}))
		}
		if err := a.recall(ctx, r.id); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
			continue
		}
		c, err := board.Read(ctx, kv, r.id)
		if tt.err != nil {
			if !errors.Is(err, queue.ErrNoRecord) {
				t.Errorf("%s: the record is %+v, %v", name, c, err)
			}
			continue
		}
		check(err)
		if !c.Finished.Equal(tt.want) || c.Recalled.IsZero() == tt.fromArchive || c.Restoring != 0 {
			t.Errorf("%s: finished %v, recalled %v, restoring %d", name, c.Finished, c.Recalled, c.Restoring)
		}
		last, err := r.queue.LastResult(ctx)
		check(err)
		s, err := board.Status(ctx, kv, r.id)
		check(err)
		if (last > 0) != tt.fromArchive || (s.Status.Counts.Items == 7) != tt.fromArchive {
			t.Errorf("%s: result %d, counts %+v", name, last, s.Status.Counts)
		}
		level := "level=WARN"
		if !tt.open {
			level = "level=INFO"
		}
		if !strings.Contains(log.String(), level+" msg=\"restored a campaign from storage\"") {
			t.Errorf("%s: log %s", name, log.String())
		}
		// A second recall changes nothing.
		check(a.recall(ctx, r.id))
		if n, err := r.queue.LastResult(ctx); err != nil || n != last {
			t.Errorf("%s: result %d after a second recall, %v", name, n, err)
		}
	}
}

// An archive has the last failure of each item that is not done afterwards.
func TestFailuresOfArchive(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	a, r := archiverOf(t, &now, &strings.Builder{})
	if all, err := failures(t.Context(), r.queue, 0); len(all) > 0 || err != nil {
		t.Errorf("without a result: %+v, %v", all, err)
	}
	publishOutcome(t, r, id(1), 1, `{"outcome":"failed","reason":"again"}`)
	publishOutcome(t, r, id(1), 0, `{"outcome":"failed","reason":"first"}`)
	publishOutcome(t, r, id(2), 0, `{"outcome":"failed","reason":"first"}`)
	publishOutcome(t, r, id(2), 1, `{"outcome":"dead","reason":"again"}`)
	publishOutcome(t, r, id(3), 0, `{"outcome":"failed","reason":"first"}`)
	publishOutcome(t, r, id(3), 1, `{"outcome":"done"}`)
	publishOutcome(t, r, id(4), 0, `{"outcome":"done"}`)
	publishOutcome(t, r, id(5), 0, `{`)
	publishOutcome(t, r, manifest.IDPreflight, 0, `{"outcome":"dead","reason":"crashed"}`)
	publishOutcome(t, r, manifest.IDFault, 0, `{"reason":"no disk"}`)
	file, err := a.collect(t.Context(), r.rec)
	must(t, err)
	got, want := map[string]failure{}, map[string]failure{
		id(1): {ID: id(1), Round: 1, Outcome: manifest.OutcomeFailed, Reason: "again"},
		id(2): {ID: id(2), Round: 1, Outcome: manifest.OutcomeDead, Reason: "again"},
	}
	for _, f := range file.failures {
		got[f.ID] = f
	}
	if len(file.failures) != 2 || got[id(1)] != want[id(1)] || got[id(2)] != want[id(2)] || file.messages.results == 0 {
		t.Errorf("failures %+v, messages %+v", file.failures, file.messages)
	}
}

// Archiving removes record, status, messages and the count of starts, unless the record has changed.
func TestArchiveRemovesMessages(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	a, r := archiverOf(t, &now, &strings.Builder{})
	ctx, kv := t.Context(), a.cfg.Board
	_, err := board.Update(ctx, kv, r.id, func(c *manifest.Campaign) error {
		c.Phase, c.Finished = manifest.PhaseFinished, now.UTC()
		return nil
	})
	must(t, err)
	c, revision, err := board.ReadRevision(ctx, kv, r.id)
	must(t, err)
	must(t, kv.Put(ctx, manifest.KeyStatusPrefix+r.id, []byte("{}")))
	must(t, kv.Put(ctx, manifest.KeyStartPrefix+r.id, []byte("{}")))
	publishOutcome(t, r, id(1), 0, `{"outcome":"dead","reason":"crashed"}`)
	must(t, r.queue.PublishDead(ctx, queue.DeadLetter{Dead: queue.Dead{ID: id(1), Reason: "crashed"}, Buried: now}))
	there := func() (record, status, start bool, letters int, last uint64) {
		t.Helper()
		var err error
		has := func(prefix string) bool {
			_, _, err := kv.Get(ctx, prefix+r.id)
			if err != nil && !errors.Is(err, queue.ErrNoRecord) {
				t.Fatal(err)
			}
			return err == nil
		}
		for _, err := range r.queue.DeadLetters(ctx) {
			must(t, err)
			letters++
		}
		last, err = r.queue.LastResult(ctx)
		must(t, err)
		return has(manifest.KeyCampaignPrefix), has(manifest.KeyStatusPrefix), has(manifest.KeyStartPrefix), letters, last
	}
	must(t, a.archive(ctx, r.id, c, revision+1))
	if record, status, start, letters, last := there(); !record || !status || !start || letters != 1 || last == 0 {
		t.Errorf("a changed record: %t, %t, %t, %d letters, result %d", record, status, start, letters, last)
	}
	must(t, a.archive(ctx, r.id, c, revision))
	if record, status, start, letters, last := there(); record || status || start || letters != 0 || last != 0 {
		t.Errorf("archived: %t, %t, %t, %d letters, result %d", record, status, start, letters, last)
	}
	file, number, err := loadArchive(ctx, a.cfg.Store, r.id)
	if err != nil || number != 1 || len(file.failures) != 1 || len(file.letters) != 1 || file.Status.Phase != manifest.PhaseFinished {
		t.Errorf("archive %d: %+v, %v", number, file, err)
	}
	// Messages of a campaign that has left the board go, those of a campaign on the board stay.
	publishOutcome(t, r, id(2), 0, `{"outcome":"failed"}`)
	must(t, kv.Put(ctx, manifest.KeyStatusPrefix+r.id, []byte("{}")))
	must(t, a.cleanUp(ctx, r.id))
	if _, status, _, _, last := there(); status || last != 0 {
		t.Errorf("cleaned up: status %t, result %d", status, last)
	}
	must(t, a.recall(ctx, r.id))
	must(t, a.cleanUp(ctx, r.id))
	if record, status, _, letters, last := there(); !record || !status || letters != 1 || last == 0 {
		t.Errorf("recalled: %t, %t, %d letters, result %d", record, status, letters, last)
	}
}

// A request that its sender has left on the board is removed after ten minutes.
func TestAbandonedRequest(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	now := begin
	a, r := archiverOf(t, &now, &strings.Builder{})
	ctx, kv := t.Context(), a.cfg.Board
	const key = manifest.KeyRequestPrefix + "one"
	requestID := strings.TrimPrefix(key, manifest.KeyCampaignPrefix)
	data, err := json.Marshal(manifest.Campaign{
		Schema: manifest.RecordSchema, ID: requestID, Output: requestID, Priority: manifest.PriorityNormal, Weight: 1,
		Wanted: manifest.WantPause, Phase: manifest.PhaseFinished, Request: &manifest.Request{Verb: manifest.RequestList},
	})
	if err == nil {
		_, err = kv.Create(ctx, key, data)
	}
	must(t, err)
	a.loaded = true
	for _, tt := range []struct {
		after time.Duration
		there bool
	}{{0, true}, {requestAge - 1, true}, {requestAge, false}} {
		now = begin.Add(tt.after)
		must(t, a.scan(ctx))
		if _, _, err := kv.Get(ctx, key); (err == nil) != tt.there {
			t.Errorf("after %v: %v", tt.after, err)
		}
	}
	if newest, err := a.x.Newest(ctx, r.id); err != nil || newest.State != "" || a.open[r.id] {
		t.Errorf("a new campaign is in the index: %+v, %v", newest, err)
	}
}

// A stored record is that of an archived end if phase and time are equal, in any time zone.
func TestSameEnd(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	archived := &manifest.Campaign{Phase: manifest.PhaseFinished, Finished: at.UTC()}
	for _, c := range []struct {
		campaign manifest.Campaign
		want     bool
	}{
		{manifest.Campaign{Phase: manifest.PhaseFinished, Finished: at.In(time.FixedZone("", 3600))}, true},
		{manifest.Campaign{Phase: manifest.PhaseCancelled, Finished: at}, false},
		{manifest.Campaign{Phase: manifest.PhaseFinished, Finished: at.Add(1)}, false},
	} {
		if got := sameEnd(&c.campaign, archived); got != c.want {
			t.Errorf("%+v: %t", c.campaign, got)
		}
	}
}

// A list has the archived campaigns after a campaign, in pages.
func TestArchivedPages(t *testing.T) {
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
	a := &Archiver{x: x}
	for after, want := range map[string]string{"": "c0 c2 c4", "c0": "c2 c4", "c1": "c2 c4", "c4": ""} {
		r := &manifest.Request{After: after}
		must(t, a.list(t.Context(), r))
		var rows []listed
		err := unpack(r.List, &rows)
		var ids []string
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		if err != nil || r.More || strings.Join(ids, " ") != want {
			t.Errorf("after %q: %q, more %t, %v", after, ids, r.More, err)
		}
	}
}

// A submitted campaign that is in the archive becomes the archived one; one whose data are deleted is refused.
func TestAdmit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		entry index.Entry
		file  bool
		err   error // nil: admitted
		state index.State
	}{
		"new":           {index.Entry{}, false, nil, index.Open},
		"in the index":  {index.Entry{State: index.Open}, false, nil, index.Open},
		"archived":      {index.Entry{}, true, nil, index.Open},
		"being deleted": {index.Entry{State: index.Deleting}, false, index.ErrDeleting, index.Deleting},
	} {
		a, r := archiverOf(t, &now, &strings.Builder{})
		ctx := t.Context()
		if tt.entry.State != "" {
			tt.entry.ID, tt.entry.Output = r.id, index.OutputDigest(r.rec.Output)
			must(t, a.x.Add(ctx, tt.entry))
		}
		if tt.file {
			must(t, a.storeArchive(ctx, &archiveFile{archiveHeader: archiveHeader{Schema: archiveSchema, Campaign: *finished(r, now)}}))
		}
		adopted := false
		err := a.Admit(ctx, r.rec, func(archived *manifest.Campaign, number int) (*manifest.Campaign, error) {
			if adopted = true; !archived.Phase.Ended() || number != 1 {
				t.Errorf("%s: archive %d, record %+v", name, number, archived)
			}
			return archived, nil
		})
		if !errors.Is(err, tt.err) || adopted != tt.file {
			t.Errorf("%s: %v, adopted %t", name, err, adopted)
		}
		if e, err := a.x.Newest(ctx, r.id); err != nil || e.State != tt.state {
			t.Errorf("%s: index entry %+v, %v", name, e, err)
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

// TestDamagedArchive changes and removes each byte of an archive.
func TestDamagedArchive(t *testing.T) {
	file := archiveFile{
		archiveHeader: archiveHeader{Schema: archiveSchema, Campaign: manifest.Campaign{
			Schema: manifest.RecordSchema, ID: "night-12345678", Output: "out", Weight: 1, Priority: manifest.PriorityLow,
		}},
		failures: []failure{{ID: "1", Outcome: manifest.OutcomeFailed, Reason: "no light"}},
	}
	data, err := file.encode()
	must(t, err)
	if got, err := decodeArchive(data); err != nil || len(got.failures) != 1 || got.failures[0] != file.failures[0] {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range data {
		if _, err := decodeArchive(data[:i]); err == nil {
			t.Errorf("the first %d of %d bytes are read", i, len(data))
		}
		if i > 3 && i < 10 {
			continue // time and system of the gzip header
		}
		data[i] ^= 0x10
		if got, err := decodeArchive(data); err == nil && got.failures[0] != file.failures[0] {
			t.Errorf("with byte %d changed it is read as %+v", i, got)
		}
		data[i] ^= 0x10
	}
	file.Schema = archiveSchema + 1
	if data, err = file.encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeArchive(data); err == nil || !strings.Contains(err.Error(), "use one version") {
		t.Errorf("a newer archive: %v", err)
	}
}
