package coordinator_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// append adds rows and returns the number of items.
func (tc *testCluster) append(id, key, path string) int {
	tc.t.Helper()
	a, err := tc.command(id, command{ID: key, Verb: board.VerbAppend, Path: path})
	must(tc.t, err)
	return a.Items
}

// wantImages checks that the windows of a campaign have each image once for each task, in windows that follow each other.
func (tc *testCluster) wantImages(id string, images int) {
	tc.t.Helper()
	seen, items := map[string]int{}, 0
	for w, err := range shard.All(tc.t.Context(), tc.store, id) {
		must(tc.t, err)
		if w.Item != items {
			tc.t.Errorf("window %d begins with item %d, want %d", w.Number, w.Item, items)
		}
		items += w.Header.Items
		for _, it := range w.Items {
			seen[it.Image.Path+" "+it.Task]++
		}
	}
	for of, n := range seen {
		if n != 1 {
			tc.t.Errorf("%s is there %d times", of, n)
		}
	}
	if len(seen) != 2*images || items != 2*images {
		tc.t.Errorf("%d items, %d of them different; want %d", items, len(seen), 2*images)
	}
}

// awaitImages waits until a campaign has finished with all its items.
func (tc *testCluster) awaitImages(id string, images int) {
	tc.t.Helper()
	tc.await(id, fmt.Sprintf("finished with %d images", images), func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Complete && s.Status.Counts.Done == 2*images && s.Status.Counts.Items == 2*images
	})
}

// TestAppend: a finished campaign runs the rows that its dataset has now, wherever they are in it, and those of another dataset. Nothing new
// changes nothing. Coordinators that take over continue.
func TestAppend(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	tc.window = 4
	stop := tc.lead()
	id := tc.submit("grows", 1)
	tc.work(id)
	tc.awaitImages(id, 3)
	if n := tc.append(id, "", ""); n != 0 {
		t.Errorf("%d items without a new file", n)
	}
	tc.awaitImages(id, 3)
	for i := range 5 { // some before the others
		tc.image(fmt.Sprintf("%cnew", 'a'+3*i), 100+i)
	}
	if n := tc.append(id, "", ""); n != 4 {
		t.Errorf("%d items in the first window, want 4", n)
	}
	tc.awaitImages(id, 8)
	tc.wantImages(id, 8)
	stop()
	other := t.TempDir()
	for i := range 2 {
		must(t, writeImage(other, fmt.Sprintf("other%d", i), 200+i))
	}
	tc.lead()
	if n := tc.append(id, "", other); n != 4 {
		t.Errorf("%d items of another folder, want 4", n)
	}
	tc.awaitImages(id, 10)
	tc.image("zlast", 300)
	if n := tc.append(id, "", ""); n != 2 {
		t.Errorf("%d items of the last file, want 2", n)
	}
	tc.awaitImages(id, 11)
	tc.wantImages(id, 11)
	if _, err := tc.command(id, command{Verb: board.VerbAppend, Path: filepath.Join(other, "nothing")}); err == nil || !strings.Contains(err.Error(), "no dataset there") {
		t.Errorf("a dataset that does not exist: %v", err)
	}
	tc.awaitImages(id, 11)
}

// submitSplit submits a campaign without the images whose names begin with x.
func (tc *testCluster) submitSplit(name string) string {
	tc.t.Helper()
	spec := tc.spec(name)
	spec.Split = &manifest.Split{Tune: []string{"x*"}, Run: manifest.SideTest}
	c, _, err := recordtest.Submit(tc.t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(tc.t, err)
	return c.ID
}

// TestAppendRowsWithoutItems: rows without items, because of their task or their side, are not new each time, nor are others with their files.
func TestAppendRowsWithoutItems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.image("x", 9)
	tc.lead()
	id := tc.submitSplit("split")
	must(t, tc.write("rows.csv", []byte("image,task\nx.png,hdr\nx.png,super_resolution\n")))
	spec := tc.spec("left out")
	spec.Dataset.Path, spec.Tasks, spec.LeftOut = filepath.Join(tc.dir, "rows.csv"), []item.Task{{Name: "super_resolution"}}, []string{"hdr"}
	list, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	for _, c := range []struct {
		id    string
		items int
	}{{id, 4}, {list.ID, 1}} {
		tc.work(c.id)
		tc.awaitPhase(c.id, record.PhaseFinished)
		if n := tc.append(c.id, "", ""); n != 0 {
			t.Errorf("%s: %d new items", c.id, n)
		}
		stored, err := board.Read(t.Context(), tc.board, c.id)
		must(t, err)
		if s := stored.Last; stored.Phase != record.PhaseFinished || s.Windows != 1 || s.Counts.Items != c.items {
			t.Errorf("%s: phase %s, %d windows, %d items; want finished, 1, %d", c.id, stored.Phase, s.Windows, s.Counts.Items, c.items)
		}
	}
}

// TestAppendWindowWithoutItems: an append whose first window has no items runs the items of the others.
func TestAppendWindowWithoutItems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.window = 2
	tc.lead()
	id := tc.submitSplit("split")
	tc.work(id)
	tc.awaitImages(id, 1)
	other := t.TempDir()
	must(t, writeImage(other, "x", 1))
	must(t, writeImage(other, "y", 2))
	if n := tc.append(id, "", other); n != 0 {
		t.Errorf("%d items in the first window", n)
	}
	tc.awaitImages(id, 2)
	tc.wantImages(id, 2)
}

// TestAppendRepeated: an append that a client repeats after its answer was lost behind those of others adds its rows once.
func TestAppendRepeated(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.lead()
	id := tc.submit("grows", 0)
	tc.work(id)
	tc.awaitImages(id, 1)
	first, second := t.TempDir(), t.TempDir()
	must(t, writeImage(first, "first", 1))
	must(t, writeImage(second, "second", 2))
	tc.append(id, "first", first)
	tc.append(id, "second", second)
	for i := range 16 { // answers that a record keeps
		tc.append(id, fmt.Sprintf("nothing-%d", i), "")
	}
	if n := tc.append(id, "first", first); n != 2 {
		t.Errorf("%d items, want 2", n)
	}
	tc.awaitImages(id, 3)
	tc.wantImages(id, 3)
}

// TestRetryAfterAppend: a row that could not be read is retried where it is, also after rows before it, or beside it, were appended.
func TestRetryAfterAppend(t *testing.T) {
	t.Parallel()
	for _, fresh := range []string{"a", "k"} {
		tc := newTestCluster(t, 1)
		must(t, tc.write("m.png", []byte("damaged")))
		tc.lead()
		id := tc.submit("grows", 0)
		tc.work(id)
		tc.awaitPhase(id, record.PhaseFinished)
		must(t, tc.write("z.png", []byte("damaged")))
		tc.append(id, "", "")
		tc.awaitPhase(id, record.PhaseFinished)
		tc.image(fresh, 7)
		tc.append(id, "", "")
		tc.image("z", 8)
		tc.image("m", 9)
		a, err := tc.command(id, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed}})
		if err != nil || a.Items != 4 {
			t.Fatalf("%s: %d items, %v; want 4", fresh, a.Items, err)
		}
		tc.awaitImages(id, 4)
		tc.wantImages(id, 4)
	}
}

// TestRetryRowsOfOneFile: of the rows of a file, that of the first window remains the row of the first window.
func TestRetryRowsOfOneFile(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 0)
	must(t, tc.write("a.png", []byte("damaged")))
	list := "image,task\na.png,denoise\na.png,hdr\n"
	must(t, tc.write("rows.csv", []byte(list)))
	tc.lead()
	spec := tc.spec("rows")
	spec.Dataset.Path, spec.LeftOut = filepath.Join(tc.dir, "rows.csv"), []string{"denoise"}
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	tc.awaitPhase(c.ID, record.PhaseFinished)
	must(t, tc.write("rows.csv", []byte(list+"a.png,super_resolution\n")))
	tc.append(c.ID, "", "")
	tc.awaitPhase(c.ID, record.PhaseFinished)
	tc.image("a", 1)
	_, err = tc.command(c.ID, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed}})
	must(t, err)
	tc.work(c.ID)
	tc.awaitImages(c.ID, 1)
	tc.wantImages(c.ID, 1)
}

// TestAppendCrashes: an append survives the end of its coordinator before its first write and after each one, and adds each row once.
func TestAppendCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("crashes at every write: make test-all")
	}
	t.Parallel()
	tc := newTestCluster(t, 0)
	lead := func() (stop func()) { return tc.leadUntilCrash(func(string) fault { return noFault }).stop }
	for at := 0; ; at++ {
		tc.dir = t.TempDir()
		tc.image("m", 1)
		tc.image("n", 2)
		stop := lead()
		id := tc.submit(fmt.Sprintf("grows-%d", at), 0)
		stopWork := tc.work(id)
		tc.awaitImages(id, 2)
		stop()
		tc.image("a", 50)
		tc.image("z", 51)
		writes, reached := 0, false
		var sent atomic.Bool
		p := tc.leadUntilCrash(func(string) fault {
			if !sent.Load() {
				return noFault // the command has not come
			}
			if writes++; writes < at || reached {
				return noFault
			}
			if reached = true; at == 0 {
				return crashBefore
			}
			return crashAfter
		})
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			sent.Store(true)
			tc.append(id, "append", "")
		}()
		select {
		case <-p.crashed:
		case <-answered:
		}
		p.stop()
		stop = lead()
		<-answered
		tc.awaitImages(id, 4)
		tc.wantImages(id, 4)
		stop()
		stopWork()
		if !reached {
			t.Logf("crashes before the first of %d writes and after each", at-1)
			return
		}
	}
}
