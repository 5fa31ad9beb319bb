package testbed

import (
	"strings"
	"testing"
	"time"
)

// TestAttackAudit: the log of the leader says who did what: each verb of a campaign, tokens and deletions.
func TestAttackAudit(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Secure: true}})
	leader := coordinator(t, c)
	id := submit(t, c, listFile(t, "audited", 3))
	for _, verb := range []string{"pause", "resume", "cancel"} {
		wantCode(t, ask(t, c, verb, id), 0)
	}
	ask(t, c, "status", "--watch", id)
	wantCode(t, ask(t, c, "token", "create", "--owner", "ann", "--role", "submitter"), 0)
	token := strings.Fields(strings.Split(ask(t, c, "token", "list").stdout, "\n")[1])[0]
	wantCode(t, ask(t, c, "token", "revoke", token), 0)
	if left := ask(t, c, "token", "list").stdout; strings.Contains(left, token) {
		t.Errorf("a revoked token is listed: %s", left)
	}
	wantCode(t, ask(t, c, "delete", id, "--yes"), 0)
	for _, parts := range [][]string{
		{"verb=submit", "campaign=" + id}, {"verb=pause", "campaign=" + id}, {"verb=run", "campaign=" + id}, {"verb=cancel", "campaign=" + id},
		{`verb="create token"`, "token=" + token, "token_owner=ann", "token_role=submitter"}, {`verb="revoke token"`, "token=" + token},
		{"method=DELETE", "path=/api/v1/campaigns/" + id, "status=200"},
	} {
		var found string
		for end := time.Now().Add(time.Minute); found == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			for line := range strings.Lines(leader.Log()) {
				has := strings.Contains(line, "msg=audit") && (strings.Contains(line, "by=admin-token") || strings.Contains(line, "caller=admin-token")) && strings.Contains(line, "request=")
				for _, part := range parts {
					has = has && strings.Contains(line, part)
				}
				if has {
					found = line
				}
			}
		}
		if found == "" {
			t.Errorf("no line of the leader has all of %q", parts)
		}
	}
	if t.Failed() {
		t.Logf("%s", leader.Log())
	}
}
