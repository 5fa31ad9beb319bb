package testbed

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestClusterRetention archives, recalls and deletes a campaign with the permissions of docs/security: commands reach the
// archive through a coordinator.
func TestClusterRetention(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{NATS: NATSOptions{Secure: true}})
	p, err := c.AddCoordinator(t.Context(), "--nats-wait", "30s", "--archive-after", "2s")
	must(t, err)
	const items = 20
	file := listFile(t, "retained", items)
	for _, args := range [][]string{{"list"}, {"list", "--all"}, {"workers"}} {
		if e := ask(t, c, append(args, "--json")...); e.code != 0 || e.stdout != "[]\n" {
			t.Errorf("%s --json without entries: %v", args[0], e)
		}
	}
	for _, args := range [][]string{{"--weight", "0"}, {"--weight", "1001"}, {"--canary", "-1"}, {"--priority", "urgent"}} {
		e := ask(t, c, append([]string{"submit", file}, args...)...)
		wantCode(t, e, 2)
		wantMessage(t, e, strings.TrimPrefix(args[0], "--"), args[1])
	}
	simulated(t, c, 10*time.Millisecond)
	id := submit(t, c, file, "--canary", "0")
	wantFinished(t, c, id, items)
	must(t, p.WaitLog(t.Context(), "archived campaign"))

	e := ask(t, c, "list", "--all")
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, id) || !strings.Contains(e.stdout, "finished") {
		t.Errorf("list --all: %v", e)
	}
	for range 2 {
		e = ask(t, c, "status", id)
		wantCode(t, e, 0)
		if want := fmt.Sprintf("done       %d", items); !strings.Contains(e.stdout, want) {
			t.Errorf("no line %q\n%v", want, e)
		}
	}
	wantFinished(t, c, id, items) // ddiff status --watch
	wantCode(t, ask(t, c, "logs", id), 0)
	e = ask(t, c, "retry", "--missing", id)
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "published=0") {
		t.Errorf("reconcile: %v", e)
	}
	// A second submission brings the campaign back and says so.
	must(t, p.waitLog(t.Context(), "archived campaign", 2))
	e = ask(t, c, "submit", file)
	wantCode(t, e, 0)
	if want := id + "  (submitted before, now finished, back from the archive; run failed or dead items again with: ddiff retry " + id + " --failed --dead)\n"; e.stdout != want {
		t.Errorf("want %q\n%v", want, e)
	}
	wantFinished(t, c, id, items)

	e = ask(t, c, "delete", id, "--results")
	wantCode(t, e, 2) // no answer
	wantMessage(t, e, "not confirmed")
	settled(t, c, id, items)
	e = ask(t, c, "delete", id, "--results", "--yes")
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "deleted=yes") {
		t.Errorf("delete: %v", e)
	}
	if n := c.Settled(id); n != 0 {
		t.Errorf("%d results are left", n)
	}
	e = ask(t, c, "status", id)
	wantCode(t, e, 2)
	wantMessage(t, e, "unknown campaign", id, "ddiff list --all")
	e = ask(t, c, "delete", id, "--yes")
	wantCode(t, e, 2)
	if e.stdout != "" {
		t.Errorf("a refused deletion prints %q", e.stdout)
	}
	e = ask(t, c, "gc", "--store", c.Store(), "--keep", "1d")
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "objects=0 bytes=0 deleted=no") {
		t.Errorf("gc: %v", e)
	}

	// A deleted campaign starts from scratch.
	if again := submit(t, c, file, "--canary", "0"); again != id {
		t.Errorf("submitted again as %s", again)
	}
	wantFinished(t, c, id, items)

	_, err = p.Stop(10 * time.Second)
	must(t, err)
	e = ask(t, c, "status", "unknown-12345678")
	wantCode(t, e, 9)
	wantMessage(t, e, "the server does not answer")
}
