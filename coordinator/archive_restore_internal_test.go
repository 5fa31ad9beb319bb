package coordinator

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// archiverOf returns an archiver with a real server and store, and the runner of a campaign that is on the board.
func archiverOf(t *testing.T, now *time.Time, log *strings.Builder) (*archiver, *runner) {
	t.Helper()
	r := decidingRunner(t, now, log).onBoard(t)
	return newArchiver(r.s, &runners{byID: map[string]*runner{}}), r
}

// finished is a copy of a runner's record after its end at a time.
func finished(r *runner, at time.Time) *manifest.Campaign {
	c := *r.rec
	c.Phase, c.Finished = manifest.PhaseFinished, at.UTC()
	return &c
}

// publishOutcome publishes an outcome of an item in a round.
func publishOutcome(t *testing.T, r *runner, id string, round int, payload string) {
	t.Helper()
	if err := r.queue.PublishResult(t.Context(), id, round, []byte(payload)); err != nil {
		t.Fatal(err)
	}
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
		"deleting":                      {archived: first, copied: first, deleting: true, err: errDeleting},
	} {
		var log strings.Builder
		a, r := archiverOf(t, &now, &log)
		store, kv, ctx := a.s.cfg.Store, a.s.cfg.Board, t.Context()
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
			check(a.x.add(ctx, indexEntry{id: r.id, number: 1, state: indexArchived, output: outputDigest(r.rec.Output)}))
		}
		if !tt.copied.IsZero() {
			check(board.Store(ctx, store, finished(r, tt.copied)))
		}
		if tt.damaged {
			check(store.Put(ctx, board.StoredKey(r.id), []byte("{")))
		}
		if tt.open {
			check(a.x.open(ctx, r.rec))
		}
		if tt.deleting {
			check(a.x.add(ctx, indexEntry{id: r.id, number: 9, state: indexDeleting, output: outputDigest(r.rec.Output)}))
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
	if err != nil {
		t.Fatal(err)
	}
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
	ctx, kv := t.Context(), a.s.cfg.Board
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(r.save(ctx, func(c *manifest.Campaign) { c.Phase, c.Finished = manifest.PhaseFinished, now.UTC() }))
	c, revision, err := board.ReadRevision(ctx, kv, r.id)
	check(err)
	check(r.publishStatus(ctx, 0))
	check(kv.Put(ctx, manifest.KeyStartPrefix+r.id, []byte("{}")))
	publishOutcome(t, r, id(1), 0, `{"outcome":"dead","reason":"crashed"}`)
	check(r.queue.PublishDead(ctx, queue.DeadLetter{Dead: queue.Dead{ID: id(1), Reason: "crashed"}, Buried: now}))
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
			check(err)
			letters++
		}
		last, err = r.queue.LastResult(ctx)
		check(err)
		return has(manifest.KeyCampaignPrefix), has(manifest.KeyStatusPrefix), has(manifest.KeyStartPrefix), letters, last
	}
	check(a.archive(ctx, r.id, c, revision+1))
	if record, status, start, letters, last := there(); !record || !status || !start || letters != 1 || last == 0 {
		t.Errorf("a changed record: %t, %t, %t, %d letters, result %d", record, status, start, letters, last)
	}
	check(a.archive(ctx, r.id, c, revision))
	if record, status, start, letters, last := there(); record || status || start || letters != 0 || last != 0 {
		t.Errorf("archived: %t, %t, %t, %d letters, result %d", record, status, start, letters, last)
	}
	file, number, err := loadArchive(ctx, a.s.cfg.Store, r.id)
	if err != nil || number != 1 || len(file.failures) != 1 || len(file.letters) != 1 || file.Status.Phase != manifest.PhaseFinished {
		t.Errorf("archive %d: %+v, %v", number, file, err)
	}
	// Messages of a campaign that has left the board go, those of a campaign on the board stay.
	publishOutcome(t, r, id(2), 0, `{"outcome":"failed"}`)
	check(kv.Put(ctx, manifest.KeyStatusPrefix+r.id, []byte("{}")))
	check(a.cleanUp(ctx, r.id))
	if _, status, _, _, last := there(); status || last != 0 {
		t.Errorf("cleaned up: status %t, result %d", status, last)
	}
	check(a.recall(ctx, r.id))
	check(a.cleanUp(ctx, r.id))
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
	ctx, kv := t.Context(), a.s.cfg.Board
	const key = manifest.KeyRequestPrefix + "one"
	requestID := strings.TrimPrefix(key, manifest.KeyCampaignPrefix)
	data, err := json.Marshal(manifest.Campaign{
		Schema: manifest.RecordSchema, ID: requestID, Output: requestID, Priority: manifest.PriorityNormal, Weight: 1,
		Wanted: manifest.WantPause, Phase: manifest.PhaseFinished, Request: &manifest.Request{Verb: manifest.RequestList},
	})
	if err == nil {
		_, err = kv.Create(ctx, key, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.loaded = true
	for _, tt := range []struct {
		after time.Duration
		there bool
	}{{0, true}, {requestAge - 1, true}, {requestAge, false}} {
		now = begin.Add(tt.after)
		if err := a.scan(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, err := kv.Get(ctx, key); (err == nil) != tt.there {
			t.Errorf("after %v: %v", tt.after, err)
		}
	}
	if newest, err := a.x.of(ctx, r.id); err != nil || newest.state != "" || a.open[r.id] {
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
