package testbed

import (
	"os"
	"os/user"
	"strings"
	"testing"
	"time"
)

// TestAttackAudit: the log of the leader says who did what by NATS: each verb of a campaign, tokens and deletions.
func TestAttackAudit(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Secure: true}})
	leader := coordinator(t, c)
	id := submit(t, c, listFile(t, "audited", 3))
	for _, verb := range []string{"pause", "resume", "cancel"} {
		wantCode(t, ask(t, c, verb, id), 0)
	}
	ask(t, c, "status", "--watch", id)
	admin := func(args ...string) ended {
		t.Helper()
		e := end(t, with(c.Command(t.Context(), args...), c.NATS.Environment(RoleCoordinator)...))
		wantCode(t, e, 0)
		return e
	}
	admin("token", "create", "--owner", "ann", "--role", "submitter")
	token := strings.Fields(strings.Split(admin("token", "list").stdout, "\n")[1])[0]
	admin("token", "revoke", token)
	if left := admin("token", "list").stdout; strings.Contains(left, token) {
		t.Errorf("a revoked token is listed: %s", left)
	}
	wantCode(t, ask(t, c, "delete", id, "--yes"), 0)
	wantCode(t, ask(t, c, "gc", "--yes"), 0)
	account, err := user.Current()
	must(t, err)
	host, err := os.Hostname()
	must(t, err)
	for _, parts := range [][]string{
		{"verb=submit", "campaign=" + id}, {"verb=pause", "campaign=" + id}, {"verb=run", "campaign=" + id}, {"verb=cancel", "campaign=" + id},
		{`verb="create token"`, "token=" + token, "token_owner=ann", "token_role=submitter"}, {`verb="revoke token"`, "token=" + token},
		{"verb=delete", "campaign=" + id}, {"verb=gc"},
	} {
		var found string
		for end := time.Now().Add(time.Minute); found == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			for line := range strings.Lines(leader.Log()) {
				has := strings.Contains(line, "msg=audit") && strings.Contains(line, "by="+account.Username+"@"+host) && strings.Contains(line, "request=")
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
