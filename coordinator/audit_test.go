package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
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

// TestAttackForeignVerbs: the leader refuses a verb of another owner, and one without the role, however it is sent: it decides by its own record. Its log
// has a line for each verb that it has executed, and a repetition with the same key has neither an effect nor a line.
func TestAttackForeignVerbs(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	var log auditLog
	tc.log = slog.New(slog.NewTextHandler(&log, nil))
	tc.lead()
	as := func(owner, request string, role api.Role) context.Context {
		return board.As(t.Context(), board.Caller{Owner: owner, Name: owner, Request: request, Role: role})
	}
	send := func(ctx context.Context, kind, id string, body, out any) error {
		return board.Do(ctx, tc.board, board.Verb{Kind: kind, Campaign: id}, body, out)
	}
	var made api.Submitted
	order := board.Order{Owner: "bob"} // a door that is wrong about the owner changes nothing
	must(t, send(as("ann", "first", api.Submitter), board.VerbSubmit, "", board.Submission{Spec: tc.spec("hers"), Order: order}, &made))
	tc.awaitPhase(made.ID, record.PhasePreflight)
	before, err := board.Load(t.Context(), tc.store, made.ID)
	must(t, err)
	kinds := map[string]any{
		"pause": nil, "run": nil, "cancel": nil, "cancel_now": nil, board.VerbChange: api.Change{Weight: 5}, board.VerbRetry: board.Command{},
		board.VerbReconcile: board.Command{}, board.VerbAppend: board.Command{}, board.VerbDelete: board.Deletion{Results: true},
	}
	// A record of the board that says otherwise, as one of a backup or of a thief, counts nothing.
	forged := *before
	forged.Owner = "bob"
	data, err := json.Marshal(&forged)
	must(t, err)
	for kind, body := range kinds {
		must(t, tc.board.Put(t.Context(), record.KeyCampaignPrefix+made.ID, data))
		for _, ctx := range []context.Context{as("bob", "foreign", api.Submitter), as("ann", "foreign", api.Viewer), as("", "foreign", api.Submitter), t.Context()} {
			if err := send(ctx, kind, made.ID, body, nil); !errors.Is(err, api.ErrDenied) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	if err := send(as("bob", "foreign", api.Submitter), board.VerbCreateToken, "", board.Token{SHA256: "00"}, nil); !errors.Is(err, api.ErrDenied) {
		t.Errorf("a token: %v", err)
	}
	if err := send(as("bob", "x", api.Submitter), "dance", made.ID, nil, nil); !errors.Is(err, api.ErrRefused) {
		t.Errorf("an unknown verb: %v", err)
	}
	now, err := board.Load(t.Context(), tc.store, made.ID)
	must(t, err)
	if now.Owner != "ann" || now.Wanted != record.WantRun || now.Weight != before.Weight || log.count("request=foreign") != 0 {
		t.Errorf("the record is %+v; lines %q", now, log.lines)
	}

	pause := board.Verb{Key: "once", Kind: "pause", Campaign: made.ID}
	for range 2 {
		must(t, board.Do(as("ann\x1b[2J\nmsg=audit", "second", api.Admin), tc.board, pause, nil, nil))
	}
	must(t, send(as("ann", "third", api.Submitter), board.VerbChange, made.ID, api.Change{Weight: 5}, nil))
	token := board.Token{SHA256: strings.Repeat("ab", 32)}
	token.ID, token.Owner, token.Role = token.SHA256[:12], "carl", api.Viewer
	must(t, send(as("root", "fourth", api.Admin), board.VerbCreateToken, "", token, nil))
	must(t, send(as("root", "fifth", api.Admin), board.VerbRevokeToken, "", token.ID, nil))
	for request, parts := range map[string][]string{
		"first": {"verb=submit", "by=ann", "campaign=" + made.ID}, "second": {"verb=pause", `by="ann\x1b[2J\nmsg=audit"`}, "third": {"verb=change"},
		"fourth": {`verb="create token"`, "by=root", "token_owner=carl"}, "fifth": {`verb="revoke token"`, "token=" + token.ID},
	} {
		if n := log.count(append(parts, "request="+request)...); n != 1 {
			t.Errorf("%d lines of the %s request in %q", n, request, log.lines)
		}
	}
}

// TestAttackLostTokens: a board without its tokens, or with a revoked one, gets those of the store.
func TestAttackLostTokens(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.lead()
	kept, revoked := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	for _, sum := range []string{kept, revoked} {
		token := board.Token{SHA256: sum}
		token.ID, token.Owner = sum[:12], "carl"
		must(t, tc.do(board.VerbCreateToken, "", token, nil))
	}
	backup, _, err := tc.board.Get(t.Context(), record.KeyTokenPrefix+revoked)
	must(t, err)
	must(t, tc.do(board.VerbRevokeToken, "", revoked[:12], nil))
	if err := tc.do(board.VerbRevokeToken, "", revoked[:12], nil); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a second revocation: %v", err)
	}
	must(t, tc.board.Delete(t.Context(), record.KeyTokenPrefix+kept))
	must(t, tc.board.Put(t.Context(), record.KeyTokenPrefix+revoked, backup))
	for end := time.Now().Add(patience); ; pause(t.Context(), 10*time.Millisecond) {
		keys, err := tc.board.Keys(t.Context(), record.KeyTokenPrefix)
		must(t, err)
		if len(keys) == 1 && keys[0] == record.KeyTokenPrefix+kept {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the board has the tokens %q", keys)
		}
	}
}
