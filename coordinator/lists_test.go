package coordinator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// TestAttackLists: a list of many campaigns takes a few requests, as the leader has the records in memory. It has each write that has ended,
// and is the same without a leader.
func TestAttackLists(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	stop := tc.leadArchiving(time.Hour, unchanged)
	const many = 20
	var ids []string
	for i := range many {
		ids = append(ids, tc.submit(fmt.Sprintf("camp-%02d", i), 0))
	}
	for _, id := range ids {
		tc.awaitPhase(id, manifest.PhasePreflight)
	}
	for i, bytes := range []int{100, 300 << 10, 300 << 10, 700 << 10} { // the last fits into no answer, and the two before not into one
		must(t, tc.board.Put(t.Context(), fmt.Sprintf("%sbad-%d", manifest.KeyStatusPrefix, i), []byte(strings.Repeat("x", bytes))))
		if i == 2 {
			tc.wantLists(many, 10)
		}
	}
	tc.wantLists(many, 1000)
	must(t, tc.board.Put(t.Context(), manifest.KeyCampaignPrefix+"damaged", []byte("{")))
	must(t, tc.board.Delete(t.Context(), manifest.KeyStatusPrefix+"bad-3"))
	tc.wantLists(many, 10)
	stop()
	must(t, tc.board.Delete(t.Context(), queue.KeyLeader))
	tc.wantLists(many, 1000)
}

// wantLists compares the leader's list of n campaigns with that of the board. The list sends at most a number of requests.
func (tc *testCluster) wantLists(n int, requests uint64) {
	tc.t.Helper()
	nc, err := tc.server.Connect()
	must(tc.t, err)
	defer nc.Close()
	kv, err := queue.OpenBoard(tc.t.Context(), nc, nil)
	must(tc.t, err)
	list := func() ([]manifest.CampaignStatus, []error, uint64) {
		before := nc.Stats().OutMsgs
		got, bad, err := archive.Campaigns(tc.t.Context(), kv)
		must(tc.t, err)
		return got, bad, nc.Stats().OutMsgs - before
	}
	got, bad, sent := list()
	for attempt := 1; sent > requests && attempt < 5; attempt++ { // on a busy machine the leader may answer too late
		got, bad, sent = list()
	}
	if sent > requests {
		tc.t.Errorf("a list of %d campaigns took %d requests", n, sent)
	}
	want, worse, err := board.Campaigns(tc.t.Context(), tc.board)
	must(tc.t, err)
	for i := range min(len(got), len(want)) {
		got[i].Status.At = want[i].Status.At // it may have been published again
	}
	listed, err := json.Marshal(got)
	must(tc.t, err)
	onBoard, err := json.Marshal(want)
	must(tc.t, err)
	if string(listed) != string(onBoard) || len(got) != n {
		tc.t.Errorf("the leader's list has %d campaigns of %d:\n%s\nthe board has\n%s", len(got), n, listed, onBoard)
	}
	if fmt.Sprint(bad) != fmt.Sprint(worse) {
		tc.t.Errorf("the leader's list skips %v, that of the board %v", bad, worse)
	}
}
