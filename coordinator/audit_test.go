package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// auditLog has the audit lines of leaders.
type auditLog struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer.
func (l *auditLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(string(line), "msg=audit") {
		l.lines = append(l.lines, string(line))
	}
	return len(line), nil
}

// count returns the number of lines with all parts.
func (l *auditLog) count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			n++
		}
	}
	return n
}

// TestAttackAuditOfNATS: the leader's log has a line for each change that users ask for by NATS, with the request and who, also if it was asked
// for while none led, and none twice that a later write of the record follows.
func TestAttackAuditOfNATS(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	var log auditLog
	tc.log = slog.New(slog.NewTextHandler(&log, nil))
	as := func(request, by string) context.Context { return board.As(t.Context(), request, by) }
	submit := func(ctx context.Context, name string) string {
		c, _, err := board.Submit(ctx, tc.board, tc.spec(name), board.Order{}, time.Now())
		must(t, err)
		return c.ID
	}
	await := func(parts ...string) {
		t.Helper()
		for end := time.Now().Add(patience); log.count(parts...) == 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no line with %q in %q", parts, log.lines)
			}
		}
	}
	want := func(ctx context.Context, id string, w manifest.Wanted) {
		t.Helper()
		_, err := board.Want(ctx, tc.board, id, w)
		must(t, err)
	}
	first := submit(as("first-request", "ann@laptop"), "first") // while none leads
	stop := tc.lead()
	await("request=first-request", "verb=submit", "by=ann@laptop", "campaign="+first)
	for i := range 10 { // faster than the leader reads
		want(as(fmt.Sprint("fast-", i, "-"), "bob"), first, []manifest.Wanted{manifest.WantPause, manifest.WantRun}[i%2])
	}
	for i := range 10 {
		await(fmt.Sprint("request=fast-", i, "-"), "by=bob")
	}
	_, err := board.SetBudget(as("", "eve\x1b[2J\nmsg=audit"), tc.board, first, manifest.Budget{Seconds: 5})
	must(t, err)
	await("verb=budget", `by="eve\x1b[2J\nmsg=audit"`)
	want(as("cancelled", "bob"), first, manifest.WantCancelNow)
	await("request=cancelled", "verb=cancel_now")
	for { // the record names its lines once it has ended
		c, err := board.Read(t.Context(), tc.board, first)
		must(t, err)
		if c.Phase.Ended() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	token, err := json.Marshal(manifest.Token{ID: "abc", Owner: "carl", Role: "viewer", Ask: &manifest.Ask{Request: "new-token", By: "root", Verb: "create token"}})
	must(t, err)
	must(t, tc.board.Put(t.Context(), manifest.KeyTokenPrefix+"abc", token))
	await("request=new-token", "by=root", `verb="create token"`, "token_owner=carl")
	must(t, tc.board.Put(t.Context(), queue.KeyLeader, []byte("{}")))

	stop()
	want(as("unled", "ann@laptop"), first, manifest.WantRun)
	revoked, err := json.Marshal(manifest.Token{ID: "abc", Owner: "carl", Role: "viewer", Revoked: true, Ask: &manifest.Ask{Request: "gone-token", By: "root", Verb: "revoke token"}})
	must(t, err)
	must(t, tc.board.Put(t.Context(), manifest.KeyTokenPrefix+"abc", revoked))
	tc.lead()
	await("request=unled", "verb=run")
	await("request=gone-token", `verb="revoke token"`)
	for { // the leader removes the record of a revoked token
		if _, _, err := tc.board.Get(t.Context(), manifest.KeyTokenPrefix+"abc"); err != nil {
			if !errors.Is(err, queue.ErrNoRecord) {
				t.Fatal(err)
			}
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, tc.board.Put(t.Context(), manifest.KeyTokenPrefix+"abc", token)) // a backup of the board
	for {
		if _, _, err := tc.board.Get(t.Context(), manifest.KeyTokenPrefix+"abc"); errors.Is(err, queue.ErrNoRecord) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, request := range []string{"first-request", "fast-0-", "new-token"} {
		if n := log.count("request=" + request); n != 1 {
			t.Errorf("%d lines of the request %s, want 1", n, request)
		}
	}
}
