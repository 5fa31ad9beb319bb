package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const administrator = "an administrator's token of a test"

// as runs the program with an access token to its end.
func as(t *testing.T, token string, args ...string) ended {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "DDIFF_TOKEN="+token)
	return end(t, cmd)
}

// TestAttackOwners: a submitter changes nothing of another owner's campaign, by the leader or by a standby, with any verb; its owner does.
func TestAttackOwners(t *testing.T) {
	t.Parallel()
	store, n, admin := t.TempDir(), startNATS(t, ""), filepath.Join(t.TempDir(), "admin")
	write(t, admin, []byte(administrator+"\n"))
	_, leader := n.coordinator(t, store, "--admin-token", admin)
	_, standby := n.coordinator(t, store, "--admin-token", admin)
	token := func(owner, role string) string {
		e := as(t, administrator, "token", "create", "--owner", owner, "--role", role, "--server", leader)
		wantCode(t, e, 0)
		return strings.TrimSpace(e.stdout)
	}
	ann, bob, viewer := token("ann", "submitter"), token("bob", "submitter"), token("ann", "viewer")
	file := filepath.Join(t.TempDir(), "night.yaml")
	write(t, file, []byte("name: night\ndataset: {path: /photos.csv}\ntasks: [hdr]\n"))
	e := as(t, ann, "submit", file, "--server", standby)
	wantCode(t, e, 0)
	id := strings.TrimSpace(e.stdout)
	for _, server := range []string{leader, standby} {
		for _, verb := range []string{"pause", "resume", "change --weight 2", "cancel", "cancel --now", "retry --missing", "append", "delete --yes", "delete --dry-run"} {
			words := strings.Fields(verb)
			args := append([]string{words[0], id, "--server", server}, words[1:]...)
			wantRefusal(t, as(t, bob, args...), 2, "belongs to another owner")
			wantRefusal(t, as(t, viewer, args...), 2, "has the role viewer")
		}
		wantRefusal(t, as(t, bob, "token", "list", "--server", server), 2, "needs admin")
		wantRefusal(t, as(t, "wrong", "list", "--server", server), 2, "sign in with: ddiff login")
		wantCode(t, as(t, bob, "status", id, "--server", server), 0)
	}
	wantCode(t, as(t, ann, "pause", id, "--server", standby), 0)
	// What is changed is that of the campaign at every coordinator, and stays after a second submission, which says so.
	wantCode(t, as(t, ann, "change", id, "--server", standby, "--weight", "7", "--pool", "a100", "--deadline", "2031-01-01T00:00:00Z", "--budget", "items=9"), 0)
	e = as(t, ann, "change", id, "--server", leader, "--deadline", "none", "--priority", "low", "--budget", "cost=2.5")
	wantCode(t, e, 0)
	if want := id + ": priority low, weight 7, pool a100, deadline none, budget items=9,cost=2.5\n"; e.stdout != want {
		t.Errorf("ddiff change prints %q, want %q", e.stdout, want)
	}
	e = as(t, ann, "submit", file, "--server", leader)
	wantCode(t, e, 0)
	if want := "ddiff change " + id + " --pool none --budget items=0,cost=0\n"; !strings.HasSuffix(e.stderr, want) {
		t.Errorf("a second submission says %q, want %q", e.stderr, want)
	}
	// Bob's submission of the file is a campaign of his own.
	e = as(t, bob, "submit", file, "--server", leader)
	wantCode(t, e, 0)
	if his := strings.TrimSpace(e.stdout); his == id {
		t.Errorf("Bob's campaign is %s, that of Ann", his)
	}
	for rows, args := range map[int][]string{2: {"list"}, 1: {"list", "--mine"}} {
		e := as(t, ann, append(args, "--server", leader)...)
		wantCode(t, e, 0)
		if n := strings.Count(e.stdout, "\n"); n != 1+rows || !regexp.MustCompile(`^CAMPAIGN +OWNER +POOL +PHASE `).MatchString(e.stdout) {
			t.Errorf("%v prints %d lines:\n%s", args, n, e.stdout)
		}
	}
	e = as(t, ann, "status", "--server", leader) // the newest of her own
	wantCode(t, e, 0)
	if !regexp.MustCompile(`(?s)^campaign +` + id + `\n.*owner +ann\npool +a100\n`).MatchString(e.stdout) {
		t.Errorf("the status is\n%s", e.stdout)
	}
	wantCode(t, as(t, administrator, "cancel", id, "--server", leader), 0)
}

// TestAdminToken: no coordinator serves others without a token; that of a file works at once, until the file has another.
func TestAdminToken(t *testing.T) {
	t.Parallel()
	n, admin := startNATS(t, ""), filepath.Join(t.TempDir(), "admin")
	public := strings.Replace(freeAddress(t), "127.0.0.1", "0.0.0.0", 1)
	refused := func(want string, args ...string) {
		t.Helper()
		wantRefusal(t, ddiff(t, append([]string{"coordinator", "--nats", n.url, "--store", t.TempDir(), "--log-level", "off"}, args...)...), 2, want)
	}
	refused("needs an access token, and there is none; give --admin-token FILE or --oidc-issuer", "--listen", public)
	refused("needs an access token", "--require-tokens")
	refused("--admin-token: open "+admin, "--admin-token", admin)
	write(t, admin, []byte("short"))
	refused("has a token of 5 bytes, at least 24 are needed", "--admin-token", admin)

	write(t, admin, []byte(administrator+"\n"))
	c, at := n.coordinator(t, t.TempDir(), "--admin-token", admin)
	wantCode(t, as(t, administrator, "token", "list", "--server", at), 0)
	config := t.TempDir()
	user := func(stdin string, args ...string) ended {
		cmd := command(t, append(args, "--server", at)...)
		cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+config)
		cmd.Stdin = strings.NewReader(stdin)
		return end(t, cmd)
	}
	wantRefusal(t, user("", "list"), 2, "sign in with: ddiff login")
	wantRefusal(t, user("", "login"), 2, "there is no token on standard input")
	wantRefusal(t, user("wrong\n", "login"), 2, "the access token is unknown")
	e := user(administrator+"\n", "login")
	wantCode(t, e, 0)
	wantLine(t, e, at, "admin")
	wantCode(t, user("", "list"), 0)
	kept := filepath.Join(config, "ddiff", "tokens.json")
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the tokens: %v, %v", info, err)
	}
	must(t, os.Chmod(kept, 0o644))
	wantRefusal(t, user("", "list"), 2, "others may read "+kept)
	must(t, os.Chmod(kept, 0o600))
	write(t, admin, []byte("another token of an administrator\n"))
	wantRefusal(t, user("", "list"), 2, "the access token is unknown")
	wantCode(t, as(t, "another token of an administrator", "list", "--server", at), 0)
	if text := c.stderr.text(); strings.Contains(text, administrator) {
		t.Errorf("the log has the token: %s", text)
	}
	if all := files(t, config); len(all) != 1 {
		t.Errorf("ddiff login has written %q", all)
	}
}

// TestDefaultListen: coordinators without --listen share a machine; one of them serves at the default address unless another program has it.
func TestDefaultListen(t *testing.T) {
	t.Parallel()
	n, store := startNATS(t, ""), t.TempDir()
	var said strings.Builder
	for range 2 {
		c := startProcess(t, nil, "coordinator", "--nats", n.url, "--store", store)
		c.wait(t, &c.stderr, "coordinator is ready", 1)
		t.Cleanup(func() { c.signal(t, syscall.SIGTERM); wantCode(t, c.end(), 0) })
		said.WriteString(c.stderr.text())
	}
	if text := said.String(); !strings.Contains(text, "serves no page and no HTTP API; give --listen HOST:PORT, or --listen off") || !strings.Contains(text, "address already in use") {
		t.Errorf("the second coordinator does not say that the address is in use: %s", text)
	}
}
