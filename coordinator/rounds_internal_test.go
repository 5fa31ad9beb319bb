package coordinator

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

// A stored round makes its items pending again, in the next runner too, which learns the round of a record that is older.
func TestStoredRounds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := runningRunner(t, &now, &strings.Builder{})
	all := items(0, 4)
	for i, to := range []ledger.State{ledger.Failed, ledger.Dead, ledger.Done, ledger.Done} {
		r.outcomes.ledger.Settle(all[i].ID, 0, to, "because")
	}
	first, err := r.rounds.start(t.Context(), r.outcomes.ledger, ledger.Round{Command: "1", Items: identities(all[:2])})
	if err != nil || first.Round != 1 || r.rec.Round != 1 || r.outcomes.ledger.Open() != 2 {
		t.Errorf("round %+v, record %d, %d open items, %v", first, r.rec.Round, r.outcomes.ledger.Open(), err)
	}
	if _, err := r.rounds.start(t.Context(), r.outcomes.ledger, ledger.Round{Missing: true, Items: identities(all[2:3])}); err != nil || r.rec.Round != 2 || r.outcomes.ledger.Open() != 3 {
		t.Errorf("record %d, %d open items, %v", r.rec.Round, r.outcomes.ledger.Open(), err)
	}
	if !r.outcomes.ledger.WasMissing(all[2].ID) || r.outcomes.ledger.WasMissing(all[0].ID) {
		t.Error("a missing result is not marked, or another one is")
	}
	r.rec = onRecord(t, r, func(c *record.Campaign) { c.Round = 1 })
	r.outcomes.ledger = ledger.New()
	for _, it := range all {
		r.outcomes.ledger.Add(it.ID)
		r.outcomes.ledger.Settle(it.ID, 0, ledger.Failed, "because")
	}
	must(t, r.rounds.restore(t.Context(), r.outcomes.ledger))
	if r.rec.Round != 2 || r.outcomes.ledger.Open() != 2 || len(r.rounds.retries) != 1 || r.rounds.retries["1"] != 2 || !slices.Equal(r.rounds.unsent.Items, first.Items) {
		t.Errorf("record %d, %d open items, retries %+v", r.rec.Round, r.outcomes.ledger.Open(), r.rounds.retries)
	}
	revision := func() uint64 {
		t.Helper()
		_, n, err := board.ReadRevision(t.Context(), r.s.cfg.Board, r.id)
		must(t, err)
		return n
	}
	before := revision()
	if err := r.rounds.restore(t.Context(), r.outcomes.ledger); err != nil || revision() != before {
		t.Errorf("the record is written again: %v", err)
	}
	must(t, r.s.cfg.Store.Put(t.Context(), ledger.RoundPrefix(r.id)+"000009.json.gz", []byte("damaged")))
	if err := r.rounds.restore(t.Context(), r.outcomes.ledger); err == nil || !strings.Contains(err.Error(), "000009") {
		t.Errorf("a damaged round: %v", err)
	}
}

// A command is answered with its number of items or the reason of its refusal; a finished campaign runs again for them.
func TestExecutedCommands(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	failures := []item.Outcome{item.OutcomeFailed}
	for name, tt := range map[string]struct {
		phase  record.Phase
		verb   string
		failed int
		items  int
		reason string
		after  record.Phase
	}{
		"retry":                     {record.PhaseRunning, board.VerbRetry, 2, 2, "", record.PhaseRunning},
		"retry of nothing":          {record.PhaseRunning, board.VerbRetry, 0, 0, "", record.PhaseRunning},
		"retry of a finished":       {record.PhaseFinished, board.VerbRetry, 1, 1, "", record.PhaseRunning},
		"retry of a sound finished": {record.PhaseFinished, board.VerbRetry, 0, 0, "", record.PhaseFinished},
		"retry of a cancelled":      {record.PhaseCancelled, board.VerbRetry, 1, 0, "resume it first", record.PhaseCancelled},
		"reconcile":                 {record.PhaseRunning, board.VerbReconcile, 0, 4, "", record.PhaseRunning},
		"unknown":                   {record.PhaseRunning, "dance", 0, 0, "unknown command", record.PhaseRunning},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.rec = onRecord(t, r, func(c *record.Campaign) {
			c.Phase = tt.phase
		})
		asked := r.ask("1", tt.verb, board.Command{Outcomes: failures}) // a newer version may know other verbs
		all := items(0, 4)
		for _, it := range all[:tt.failed] {
			r.outcomes.ledger.Settle(it.ID, 0, ledger.Failed, "no light")
		}
		open := r.outcomes.ledger.Open()
		if err := r.executeAsked(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := asked.await(t.Context())
		n := out.Items
		if r.rec.Phase != tt.after || n != tt.items || (err != nil) != (tt.reason != "") || err != nil && !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %d items, %v, record %+v", name, n, err, r.rec)
		}
		if again := r.ask("1", tt.verb, board.Command{Outcomes: failures}); tt.verb == board.VerbRetry && n > 0 { // a client repeats it
			must(t, r.executeAsked(t.Context()))
			if m, _ := again.await(t.Context()); m.Items != n {
				t.Errorf("%s: %d items when it is repeated, %d before", name, m.Items, n)
			}
		}
		if tt.after == record.PhaseRunning { // an ended campaign has no queue
			if work := workIn(t, r); len(work) != tt.items {
				t.Errorf("%s: %d items in the queue", name, len(work))
			}
		}
		if want := open + tt.failed; tt.reason == "" && r.outcomes.ledger.Open() != want {
			t.Errorf("%s: %d open items, want %d", name, r.outcomes.ledger.Open(), want)
		}
	}
}

// Done items without a result are pending again; a second loss of one pauses the campaign.
func TestMissingResultsReturn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := runningRunner(t, &now, &strings.Builder{})
	all := items(0, 4)
	for _, it := range all {
		r.outcomes.ledger.Settle(it.ID, 0, ledger.Done, "")
	}
	putResult(t, r, all[1], item.OutcomeDone)
	putResult(t, r, all[3], item.OutcomeDone)
	for lost := range 2 {
		if lost == 1 {
			for _, i := range []int{0, 2} {
				r.outcomes.ledger.Settle(all[i].ID, r.rec.Round, ledger.Done, "")
			}
			must(t, r.queue.Drop(t.Context()))
			must(t, r.openQueue(t.Context()))
		}
		must(t, r.restoreMissing(t.Context(), missingResultsError{all[0].ID, all[2].ID}))
		paused := r.rec.Wanted == record.WantPause && strings.Contains(r.rec.Reason, "2 results that workers have reported are missing")
		if r.outcomes.ledger.Open() != 2 || r.rec.Round != lost+1 || paused != (lost == 1) || r.queue.paused != (lost == 1) {
			t.Errorf("loss %d: %d open items, round %d, wanted %s, reason %q", lost, r.outcomes.ledger.Open(), r.rec.Round, r.rec.Wanted, r.rec.Reason)
		}
		must(t, r.queue.pause(t.Context(), false))
		if work := workIn(t, r); len(work) != 2 || work[all[0].ID] == nil || work[all[2].ID] == nil {
			t.Errorf("loss %d: %d items in the queue", lost, len(work))
		}
	}
	// A listing finds them too; with all results it starts no round.
	for _, i := range []int{0, 2} {
		r.outcomes.ledger.Settle(all[i].ID, r.rec.Round, ledger.Done, "")
	}
	putResult(t, r, all[0], item.OutcomeDone)
	if err := r.reopenMissing(t.Context()); err != nil || r.outcomes.ledger.Open() != 1 || r.rec.Round != 3 || r.outcomes.ledger.State(all[2].ID) != ledger.Pending {
		t.Errorf("%d open items, round %d, %v", r.outcomes.ledger.Open(), r.rec.Round, err)
	}
	if err := r.reopenMissing(t.Context()); err != nil || r.rec.Round != 3 {
		t.Errorf("round %d, %v", r.rec.Round, err)
	}
}

// The next window is published without the items that storage has, if it was stored before this leader.
func TestNextWindowIsVerified(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for unverified, want := range map[int]int{0: 2, 1: 1, 2: 1} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.windows.published, r.windows.unverified = 0, unverified
		all := items(0, 4)
		putResult(t, r, all[0], item.OutcomeDone)
		must(t, r.advance(t.Context()))
		if work := workIn(t, r); len(work) != want || work[all[1].ID] == nil {
			t.Errorf("%d windows before this leader: %d items in the queue", unverified, len(work))
		}
		if s := r.status.last; r.windows.published != 1 || s.Windows != 1 || s.Complete || r.rec.Number != 1 {
			t.Errorf("%d windows, status %+v, state %d: a window makes no state", r.windows.published, s, r.rec.Number)
		}
	}
}

// A campaign waits while results of its output are deleted, and not for another output.
func TestOutputThatIsDeleted(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		id      string
		output  string // default: the campaign's
		state   index.State
		results bool
		begun   bool
		want    string
	}{
		"results":            {"other-12345678", "", index.Deleting, true, false, "ddiff delete other-12345678 --results"},
		"no results":         {"other-12345678", "", index.Deleting, false, false, ""},
		"another output":     {"other-12345678", "elsewhere", index.Deleting, true, false, ""},
		"open":               {"other-12345678", "", index.Open, false, false, ""},
		"campaign has begun": {"other-12345678", "", index.Deleting, true, true, ""},
	} {
		r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
		r.s.archive = r.s.newArchiver()
		x := index.New(r.s.cfg.Store)
		output := r.rec.Output
		if tt.output != "" {
			output = tt.output
		}
		if tt.begun {
			r.rec.Prior.Name = "p"
		}
		must(t, x.Add(t.Context(), index.Entry{ID: tt.id, State: tt.state, Output: index.OutputDigest(output), Results: tt.results}))
		err := r.checkOutput(t.Context())
		var rejected rejection
		if (err != nil) != (tt.want != "") || err != nil && (!errors.As(err, &rejected) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Outcomes of an earlier round of the preflight, and those that cannot be read, do not count. An outcome moves the progress.
func TestSettledEvents(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	now, log := begin, &strings.Builder{}
	r := decidingRunner(t, &now, log)
	for i := range 3 {
		r.outcomes.ledger.Add(id(i))
	}
	r.rec.Round = 2
	settle := func(e queue.Result) {
		t.Helper()
		log.Reset()
		now = now.Add(time.Second)
		if err := r.enterEvents(event{result: e}); err != nil || r.outcomes.seen != e.Seq || r.outcomes.behind != int(e.Behind) {
			t.Errorf("event %d: %v, seen %d, behind %d", e.Seq, err, r.outcomes.seen, r.outcomes.behind)
		}
	}
	settle(queue.Result{ID: record.IDPreflight, Round: 1, Payload: []byte(`{"worker":"a"}`), Seq: 1, Behind: 7})
	if r.trial.checked != nil {
		t.Error("an answer of an earlier round counts")
	}
	settle(queue.Result{ID: record.IDPreflight, Round: 2, Payload: []byte(`{"worker":"a"}`), Seq: 2})
	if r.trial.checked == nil || !r.outcomes.progress.IsZero() {
		t.Errorf("answer %+v, progress %v", r.trial.checked, r.outcomes.progress)
	}
	settle(queue.Result{ID: id(0), Payload: []byte(`{`), Seq: 3})
	if r.outcomes.ledger.Open() != 3 || !strings.Contains(log.String(), "skipped an outcome") {
		t.Errorf("%d open items, log %s", r.outcomes.ledger.Open(), log)
	}
	settle(queue.Result{ID: id(0), Round: 2, Payload: []byte(`{"outcome":"done"}`), Seq: 4})
	if r.outcomes.ledger.Open() != 2 || !r.outcomes.progress.Equal(now) || log.Len() > 0 || r.outcomes.counted != 4 {
		t.Errorf("%d open items, progress %v, counted %d, log %s", r.outcomes.ledger.Open(), r.outcomes.progress, r.outcomes.counted, log)
	}
	before := now
	settle(queue.Result{ID: id(0), Round: 2, Payload: []byte(`{"outcome":"done"}`), Seq: 5})
	if !r.outcomes.progress.Equal(before) || r.outcomes.counted != 4 {
		t.Errorf("a repeated outcome: progress %v, counted %d", r.outcomes.progress, r.outcomes.counted)
	}
	r.outcomes.counted = 9
	settle(queue.Result{ID: id(1), Round: 2, Payload: []byte(`{"outcome":"failed","reason":"no light"}`), Seq: 6})
	if r.outcomes.ledger.Open() != 1 || !strings.Contains(log.String(), "item was not restored") || r.outcomes.counted != 9 {
		t.Errorf("%d open items, counted %d, log %s", r.outcomes.ledger.Open(), r.outcomes.counted, log)
	}
	if err := r.enterEvents(event{err: storage.ErrUnavailable}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// A leader takes no window for published that storage has lost, and all of them without a status.
func TestCountOfLostWindows(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := runningRunner(t, &now, &strings.Builder{})
	for known, want := range map[int]int{-1: 2, 0: 2, 1: 1, 2: 2, 3: 2} {
		r.status.last.Windows = known
		if unknown := r.notePublished(); r.windows.published != want || unknown != (known < 1) {
			t.Errorf("%d windows in the status: %d, unknown %t", known, r.windows.published, unknown)
		}
	}
	seen := 0
	count := func(*shard.Window) error { seen++; return nil }
	if err := r.windows.each(t.Context(), count); err != nil || seen != 2 {
		t.Errorf("%d windows, %v", seen, err)
	}
	r.windows.stored = 3
	if err := r.windows.each(t.Context(), count); !errors.Is(err, errMissingWindows) || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("a missing window: %v", err)
	}
}
