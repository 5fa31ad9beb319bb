package testbed

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddiff/restore/item"
)

// startCluster starts the servers of a cluster until the end of the test, which is skipped in short mode.
func startCluster(t *testing.T, o Options) *Cluster {
	t.Helper()
	skipLong(t)
	return startSmallCluster(t, o)
}

// skipLong skips a test of a cluster in short mode: only TestClusterKilledPreflight runs.
func skipLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a cluster of processes: make test-all")
	}
}

// startSmallCluster starts the servers of a cluster until the end of a test of some seconds.
func startSmallCluster(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Dir, o.Program = t.TempDir(), program
	c, err := Start(t.Context(), o)
	t.Cleanup(c.Stop)
	must(t, err)
	return c
}

// coordinator adds a coordinator to a cluster.
func coordinator(t *testing.T, c *Cluster) *Process {
	t.Helper()
	p, err := c.AddCoordinator(t.Context(), "--nats-wait", "30s")
	must(t, err)
	return p
}

// worker adds a worker to a cluster.
func worker(t *testing.T, c *Cluster, args ...string) *Process {
	t.Helper()
	p, err := c.AddWorker(t.Context(), append(args, "--nats-wait", "30s")...)
	must(t, err)
	return p
}

// simulated adds a worker that holds each item for about the given time.
func simulated(t *testing.T, c *Cluster, item time.Duration) *Process {
	t.Helper()
	return worker(t, c, "--simulate", item.String())
}

// ask runs a command on a cluster to its end.
func ask(t *testing.T, c *Cluster, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	return end(t, c.Command(ctx, args...))
}

// with sets variables in the environment of a command.
func with(cmd *exec.Cmd, env ...string) *exec.Cmd {
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// campaignFile writes a campaign of one task for some photographs, and returns its path.
func campaignFile(t *testing.T, name string, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf("name: %s\ndataset: {path: %q, size: 64}\ntasks: [super_resolution, hdr]\nattempts: 10\n%s\n",
		name, photographs(t, "chelsea", "coffee", "rocket"), strings.Join(more, "\n"))
	write(t, path, []byte(text))
	return path
}

// listFile writes a campaign for simulated workers, whose images are never read.
func listFile(t *testing.T, name string, rows int) string {
	t.Helper()
	dir := t.TempDir()
	var list strings.Builder
	list.WriteString("image,sha256,width,height\n")
	for i := range rows {
		fmt.Fprintf(&list, "s3://images/%06d.png,%064x,64,64\n", i, i+1)
	}
	write(t, filepath.Join(dir, "list.csv"), []byte(list.String()))
	path := filepath.Join(dir, name+".yaml")
	write(t, path, fmt.Appendf(nil, "name: %s\ndataset: {path: list.csv, size: 64}\ntasks: [hdr]\nattempts: 10\n", name))
	return path
}

// submit submits a campaign and returns its id.
func submit(t *testing.T, c *Cluster, file string, args ...string) string {
	t.Helper()
	e := ask(t, c, append([]string{"submit", file}, args...)...)
	wantCode(t, e, 0)
	return strings.TrimSpace(e.stdout)
}

// wantFinished watches a campaign to its end and checks that all items are done.
func wantFinished(t *testing.T, c *Cluster, id string, items int) {
	t.Helper()
	e := ask(t, c, "status", "--watch", id)
	if want := fmt.Sprintf("done=%d failed=0 dead=0 lost=0\n", items); e.code != 0 || e.stdout != want {
		logProcesses(t, c)
		t.Fatalf("want %q\n%v", want, e)
	}
}

// logProcesses logs what the coordinators and workers of a cluster did and, with their stacks, what they do. It ends them.
func logProcesses(t *testing.T, c *Cluster) {
	t.Helper()
	for _, p := range slices.Concat(c.Coordinators, c.Workers) {
		must(t, p.Signal(syscall.SIGQUIT))
		select {
		case <-p.Exited():
		case <-time.After(10 * time.Second):
		}
		t.Logf("%s:\n%s", p.Name, p.Log())
	}
}

// settled waits for a number of results.
func settled(t *testing.T, c *Cluster, output string, n int) {
	t.Helper()
	deadline := time.Now().Add(commandLimit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for c.Settled(output) < n {
		if time.Now().After(deadline) {
			status := ask(t, c, "status", output)
			logProcesses(t, c)
			t.Fatalf("%d items have a result, want %d; the status is\n%v", c.Settled(output), n, status)
		}
		<-tick.C
	}
}

// TestClusterReconcile removes a result from the store: reconcile finds the missing item, also under another leader.
func TestClusterReconcile(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true})
	first := coordinator(t, c)
	simulated(t, c, 10*time.Millisecond)
	const items = 20
	id := submit(t, c, listFile(t, "reconciled", items), "--canary", "0")
	wantFinished(t, c, id, items)
	reconciled := func(want string) {
		t.Helper()
		e := ask(t, c, "retry", "--missing", id)
		wantCode(t, e, 0)
		if e.stdout != want+"\n" {
			t.Errorf("reconcile printed %q, want %q", e.stdout, want)
		}
		wantFinished(t, c, id, items)
		if n := c.Settled(id); n != items {
			t.Errorf("%d results, want %d", n, items)
		}
	}
	reconciled("published=0")
	if e := ask(t, c, "__complete", "status", ""); !strings.Contains(e.stdout, id+"\t") {
		t.Errorf("the completion lacks the campaign\n%v", e)
	}
	found, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*", item.FileResult))
	must(t, err)
	must(t, os.Remove(found[3]))
	must(t, os.Remove(found[7]))
	reconciled("published=2")
	must(t, os.Remove(found[3]))
	first.Kill()
	coordinator(t, c)
	reconciled("published=1")
}

// withPassword replaces the password in the addresses of servers.
func withPassword(t *testing.T, urls, password string) string {
	t.Helper()
	var out []string
	for part := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(part)
		must(t, err)
		u.User = url.UserPassword(u.User.Username(), password)
		out = append(out, u.String())
	}
	return strings.Join(out, ",")
}
