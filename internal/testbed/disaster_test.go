package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/restore/item"
)

// The disasters of docs/operations.md, each with real processes. A campaign of disasterRows items and one row that cannot be
// read runs on two simulated workers. Afterwards done, failed and dead must add up to the manifest, and the store must
// have a result of each done item.
const disasterRows = 60

// disaster is a cluster with a campaign that is half done, and an archived campaign.
type disaster struct {
	*Cluster
	t           *testing.T
	coordinator *Process
	id          string // of the running campaign
	archived    string
}

// startDisaster starts the cluster and waits until some items have their results.
func startDisaster(t *testing.T, o Options) *disaster {
	t.Helper()
	c := startCluster(t, o)
	d := &disaster{Cluster: c, t: t}
	d.lead()
	simulated(t, c, 100*time.Millisecond)
	simulated(t, c, 100*time.Millisecond)
	d.archived = submit(t, c, disasterFile(t, "before", 5), "--canary", "0")
	d.wantEnd(d.archived, 5)
	must(t, d.coordinator.WaitLog(t.Context(), "archived campaign"))
	d.id = submit(t, c, disasterFile(t, "during", disasterRows), "--canary", "0")
	settled(t, c, d.id, 10)
	return d
}

// lead starts a coordinator, which archives ended campaigns at once.
func (d *disaster) lead(args ...string) {
	d.t.Helper()
	p, err := d.AddCoordinator(d.t.Context(), append(args, "--nats-wait", "30s", "--archive-after", "1s")...)
	must(d.t, err)
	d.coordinator = p
}

// disasterFile is listFile with a row that fails.
func disasterFile(t *testing.T, name string, rows int) string {
	t.Helper()
	path := listFile(t, name, rows)
	list := filepath.Join(filepath.Dir(path), "list.csv")
	write(t, list, append(read(t, list), "s3://images/bad.png,not-a-digest,64,64\n"...))
	return path
}

// wantEnd watches a campaign to its end and checks its counts and results.
func (d *disaster) wantEnd(id string, rows int) {
	d.t.Helper()
	e := ask(d.t, d.Cluster, "status", "--watch", id)
	want := fmt.Sprintf("done=%d failed=1 dead=0 lost=0\n", rows)
	if e.code != 3 || e.stdout != want {
		for _, p := range append(d.Coordinators, d.Workers...) {
			d.t.Logf("%s:\n%s", p.Name, tail(p.Log()))
		}
		d.t.Fatalf("want %q\n%v", want, e)
	}
	if n := d.Settled(id); n != rows {
		d.t.Errorf("the store has %d results of %s, want %d", n, id, rows)
	}
}

// wantBoth checks both campaigns at the end of a test. ddiff status knows the archived one.
func (d *disaster) wantBoth() {
	d.t.Helper()
	d.wantEnd(d.id, disasterRows)
	e := ask(d.t, d.Cluster, "status", d.archived)
	wantCode(d.t, e, 0)
	if !strings.Contains(e.stdout, "done       5") || !strings.Contains(e.stdout, "failed     1") {
		d.t.Errorf("status of the archived campaign: %v", e)
	}
}

// emptyNATS replaces the files of the NATS server by those of a directory, or removes them.
func (d *disaster) emptyNATS(backup string) {
	d.t.Helper()
	server := d.NATS.Servers[0]
	server.Kill()
	must(d.t, os.RemoveAll(d.streams()))
	if backup != "" {
		must(d.t, os.CopyFS(d.streams(), os.DirFS(backup)))
	}
	must(d.t, server.Start())
	must(d.t, d.NATS.Ready(d.t.Context(), 0))
}

// streams is the directory of the streams of the NATS server.
func (d *disaster) streams() string { return filepath.Join(d.o.Dir, "nats", "nats-1") }

// replaceStore replaces all objects by those of a backup, or deletes them. Programs may write meanwhile.
func (d *disaster) replaceStore(backup string) {
	d.t.Helper()
	remove := exec.CommandContext(d.t.Context(), "sh", "-c", `until rm -rf "$0"/*; do :; done`, d.Store())
	out, err := remove.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	if backup == "" {
		return
	}
	err = filepath.WalkDir(backup, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(backup, path)
		to := filepath.Join(d.Store(), rel)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(to, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return writeNew(to, data)
	})
	must(d.t, err)
}

// writeNew writes a file unless a program has written it meanwhile.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// backUp copies the objects of the store in the order that docs/operations.md requires: the results and the index first.
func (d *disaster) backUp() string {
	d.t.Helper()
	to := d.t.TempDir()
	isFirst := func(path string) bool {
		return filepath.Base(path) == item.FileResult || strings.Contains(path, "/.index/")
	}
	for _, first := range []bool{true, false} {
		err := filepath.WalkDir(d.Store(), func(path string, entry fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(d.Store(), path)
			switch {
			case err != nil || isFirst(path) != first && !entry.IsDir():
				return err
			case entry.IsDir():
				return os.MkdirAll(filepath.Join(to, rel), 0o755)
			}
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, rel), data, 0o644)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a temporary file
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.t.Fatal(err)
		}
	}
	return to
}

// endAll kills all programs of ddiff.
func (d *disaster) endAll() {
	for _, p := range append(d.Coordinators, d.Workers...) {
		p.Kill()
	}
}

// TestDisasterQueueLost deletes all data of JetStream while a campaign runs that was resumed just before; the programs run on.
func TestDisasterQueueLost(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	for _, verb := range []string{"pause", "resume"} {
		wantCode(t, ask(t, d.Cluster, verb, d.id), 0)
	}
	d.emptyNATS("")
	must(t, d.coordinator.WaitLog(t.Context(), "the result stream was replaced"))
	d.wantBoth()
}

// TestDisasterNewCluster loses the NATS server and all machines with their disks. A new server, coordinator and worker get
// the bucket only, and the coordinator a person's word that it replaces the cluster.
func TestDisasterNewCluster(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	d.endAll()
	must(t, os.RemoveAll(d.path("cache")))
	d.emptyNATS("")
	d.lead("--take-over-store", refusedOwner(t, d.NewCoordinator("--nats-wait", "30s")))
	simulated(t, d.Cluster, 20*time.Millisecond)
	d.wantBoth()
}

// TestDisasterCoordinatorLost kills the only coordinator and removes its disk. Another one continues.
func TestDisasterCoordinatorLost(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	d.coordinator.Kill()
	must(t, os.RemoveAll(d.Cache(d.coordinator.Name)))
	d.lead()
	d.wantBoth()
}

// TestDisasterOlderNATS restores the NATS server from a backup that is older than the bucket.
func TestDisasterOlderNATS(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	d.NATS.Servers[0].Kill()
	backup := filepath.Join(t.TempDir(), "backup")
	must(t, os.CopyFS(backup, os.DirFS(d.streams())))
	must(t, d.NATS.Servers[0].Start())
	settled(t, d.Cluster, d.id, 30)
	d.endAll()
	d.emptyNATS(backup)
	d.lead()
	simulated(t, d.Cluster, 20*time.Millisecond)
	d.wantBoth()
}

// TestDisasterOlderNATSVerbs restores the NATS server from a backup that is older than what people have decided: a cancelled, a paused
// and a deleted campaign do not run, and a finished one is in the list; with programs that run on, and with new ones.
func TestDisasterOlderNATSVerbs(t *testing.T) {
	t.Parallel()
	for _, runOn := range []bool{true, false} {
		t.Run(fmt.Sprint("run on=", runOn), func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, Options{Directory: true})
			d := &disaster{Cluster: c, t: t}
			coordinator(t, c)
			simulated(t, c, 50*time.Millisecond)
			simulated(t, c, 50*time.Millisecond)
			ids := map[string]string{}
			for _, verb := range []string{"cancel", "pause", "delete"} {
				ids[verb] = submit(t, c, listFile(t, verb, 3000), "--canary", "0")
				settled(t, c, ids[verb], 1)
			}
			c.NATS.Servers[0].Kill()
			backup := filepath.Join(t.TempDir(), "backup")
			must(t, os.CopyFS(backup, os.DirFS(d.streams())))
			must(t, c.NATS.Servers[0].Start())
			must(t, c.NATS.Ready(t.Context(), 0))
			finished := submit(t, c, listFile(t, "finish", 3), "--canary", "0", "--priority", "high")
			wantFinished(t, c, finished, 3)
			wantCode(t, ask(t, c, "cancel", ids["cancel"]), 0)
			wantCode(t, ask(t, c, "pause", ids["pause"]), 0)
			wantCode(t, ask(t, c, "cancel", ids["delete"]), 0)
			ask(t, c, "status", "--watch", ids["delete"])
			ask(t, c, "status", "--watch", ids["cancel"])
			wantCode(t, ask(t, c, "delete", ids["delete"], "--yes"), 0)
			if !runOn {
				d.endAll()
			}
			d.emptyNATS(backup)
			if !runOn {
				coordinator(t, c)
				simulated(t, c, 20*time.Millisecond)
			}
			var e ended
			for range 60 { // until the leader has compared
				e = ask(t, c, "list", "--all")
				if strings.Contains(e.stdout, finished) && !strings.Contains(e.stdout, ids["delete"]) &&
					strings.Contains(line(e.stdout, ids["cancel"]), "cancelled") && strings.Contains(line(e.stdout, ids["pause"]), "paused") {
					return
				}
				time.Sleep(time.Second)
			}
			t.Errorf("want cancelled %s, paused %s, finished %s, without %s: %v", ids["cancel"], ids["pause"], finished, ids["delete"], e)
			for _, p := range c.Coordinators {
				t.Logf("%s:\n%s", p.Name, tail(p.Log()))
			}
		})
	}
}

// line returns the line of a text that has a word.
func line(text, word string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) {
			return l
		}
	}
	return ""
}

// TestDisasterOlderBucket restores the bucket from a backup that is older than the streams. Nothing stops.
func TestDisasterOlderBucket(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	backup := d.backUp()
	settled(t, d.Cluster, d.id, 30)
	d.replaceStore(backup)
	if n := d.Settled(d.id); n >= 30 {
		t.Fatalf("the backup has %d results", n)
	}
	d.wantBoth()
}

// TestDisasterOlderBucketRestart is TestDisasterOlderBucket with new programs.
func TestDisasterOlderBucketRestart(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	backup := d.backUp()
	settled(t, d.Cluster, d.id, 30)
	d.endAll()
	d.replaceStore(backup)
	d.lead()
	simulated(t, d.Cluster, 20*time.Millisecond)
	d.wantBoth()
}

// TestDisasterBucketLost deletes all objects while a campaign runs.
func TestDisasterBucketLost(t *testing.T) {
	t.Parallel()
	d := startDisaster(t, Options{Directory: true})
	d.replaceStore("")
	d.wantEnd(d.id, disasterRows)
}
