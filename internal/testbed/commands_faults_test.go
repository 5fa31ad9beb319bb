package testbed

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// TestClusterAccess connects to secured servers with wrong credentials: each attempt gives one line with a remedy.
func TestClusterAccess(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Secure: true}})
	store := []string{"--store", c.Store()}
	for name, role := range map[string]struct {
		role Role
		args []string
	}{
		"worker":      {RoleWorker, []string{"worker", "--simulate", "1s"}},
		"coordinator": {RoleCoordinator, append([]string{"coordinator"}, store...)},
	} {
		run := func(env ...string) ended {
			t.Helper()
			cmd := command(t, role.args...)
			cmd.Env = append(cmd.Env, c.Environment(role.role, t.TempDir())...)
			return end(t, with(cmd, env...))
		}
		e := run("DDIFF_NATS_URL=" + withPassword(t, c.NATS.URL(role.role), "wrong-secret"))
		wantCode(t, e, 9)
		wantMessage(t, e, "check user, password or credentials file")
		if strings.Contains(e.stderr+e.stdout, "wrong-secret") {
			t.Errorf("%s: the password is in the output\n%v", name, e)
		}
		e = run("DDIFF_NATS_CA=")
		wantCode(t, e, 9)
		wantMessage(t, e, "certificate", "authority", "CA file")
	}
	// The user of a worker has no permissions of a coordinator.
	cmd := command(t, append([]string{"coordinator"}, store...)...)
	cmd.Env = append(cmd.Env, c.Environment(RoleCoordinator, t.TempDir())...)
	e := end(t, with(cmd, "DDIFF_NATS_URL="+c.NATS.URL(RoleWorker)))
	wantCode(t, e, 9)
	wantMessage(t, e, "ermission")
}

func TestClusterExpiredCertificate(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Secure: true, Until: time.Now().Add(-time.Hour)}})
	cmd := command(t, "worker", "--simulate", "1s")
	cmd.Env = append(cmd.Env, c.Environment(RoleWorker, t.TempDir())...)
	e := end(t, cmd)
	wantCode(t, e, 9)
	wantMessage(t, e, "certificate", "expired on")
}

func TestClusterMissingBucket(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{})
	cmd := command(t, "coordinator", "--store", strings.Replace(c.Store(), Bucket, "no-such-bucket", 1))
	cmd.Env = append(cmd.Env, c.Environment(RoleCoordinator, t.TempDir())...)
	cmd.Env = append(cmd.Env, c.S3.Admin.Environment()...)
	e := end(t, cmd)
	wantCode(t, e, 6)
	wantMessage(t, e, "no-such-bucket", "create bucket")
}

// TestClusterNATSDown stops the only NATS server at the start and during a campaign.
func TestClusterNATSDown(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true})
	server := c.NATS.Servers[0]
	server.Kill()
	for _, args := range [][]string{
		{"worker", "--simulate", "1s"}, {"coordinator", "--store", c.Store()},
	} {
		begin, cmd := time.Now(), command(t, append(args, "--nats-wait", "1s")...)
		cmd.Env = append(cmd.Env, c.Environment(Role(args[0]), t.TempDir())...)
		e := end(t, cmd)
		wantCode(t, e, 9)
		wantMessage(t, e, "connect to queue", c.NATS.URL(""), "cannot reach the queue server")
		if took := time.Since(begin); took < 500*time.Millisecond {
			t.Errorf("%s did not wait: it ended after %v", args[0], took)
		}
	}
	// A sufficient --nats-wait reaches the server.
	late, lateWorker := c.NewCoordinator("--nats-wait", "1m"), c.NewWorker("--simulate", "200ms", "--nats-wait", "1m")
	must(t, late.Start())
	must(t, lateWorker.Start())
	must(t, server.Start())
	must(t, late.WaitLog(t.Context(), "coordinator is ready"))
	must(t, lateWorker.WaitLog(t.Context(), "worker is ready"))

	id := submit(t, c, listFile(t, "interrupted", 40), "--canary", "0")
	settled(t, c, id, 8)
	server.Kill()
	must(t, late.WaitLog(t.Context(), "disconnected from the queue server"))
	must(t, lateWorker.WaitLog(t.Context(), "disconnected from the queue server"))
	must(t, server.Start())
	must(t, lateWorker.WaitLog(t.Context(), "reconnected to the queue server"))
	wantFinished(t, c, id, 40)
	if n := c.Settled(id); n != 40 {
		t.Errorf("%d results, want 40", n)
	}
}

// TestAttackSmallJetStream gives JetStream less space than a window of items needs, and a second campaign that nobody works on. The work stream
// is bounded, so that outcomes and records have room: the first campaign ends, the page and status name the stream, and verbs are answered.
func TestAttackSmallJetStream(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{MaxFile: 3 << 20}})
	p := coordinator(t, c)
	simulated(t, c, 5*time.Millisecond)
	id := submit(t, c, listFile(t, "large", 4096), "--canary", "0")
	must(t, p.WaitLog(t.Context(), "stream DDIFF_WORK is "))
	named := false
	for !named && c.Settled(id) < 4096 {
		e := ask(t, c, "status", id)
		wantCode(t, e, 0)
		named = strings.Contains(e.stdout, "problem    stream DDIFF_WORK is ") && strings.Contains(e.stdout, "(of 1 MiB): further items wait; give JetStream more storage")
	}
	if !named {
		t.Error("status does not name the stream")
	}
	other := submit(t, c, listFile(t, "other", 4096), "--canary", "0")
	wantCode(t, ask(t, c, "pause", other), 0)
	wantFinished(t, c, id, 4096)
	if n := c.Settled(id); n != 4096 {
		t.Errorf("%d results, want 4096", n)
	}
	wantCode(t, ask(t, c, "cancel", other), 0)
}

// TestClusterVersions writes records of a newer version of the program to the board.
func TestClusterVersions(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true})
	p := coordinator(t, c)
	w := simulated(t, c, 10*time.Millisecond)
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: c.NATS.URL("")})
	must(t, err)
	defer nc.Close()
	board, err := queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)

	id := submit(t, c, listFile(t, "now", 3), "--canary", "0")
	wantFinished(t, c, id, 3)
	data, _, err := board.Get(t.Context(), record.KeyCampaignPrefix+id)
	must(t, err)
	later := strings.Replace(string(data), `"schema":1`, `"schema":2`, 1)
	later = strings.Replace(later, id, "later-00000000", 1)
	later = strings.Replace(later, `"phase":"finished"`, `"phase":"queued"`, 1)
	must(t, board.Put(t.Context(), record.KeyCampaignPrefix+"later-00000000", []byte(later)))
	must(t, p.WaitLog(t.Context(), "later-00000000"))
	must(t, w.WaitLog(t.Context(), "newer version"))
	wantMessage(t, ended{stderr: p.Log()}, "level=ERROR", "later-00000000", "version")

	// The coordinator reports a worker of another version.
	beat, err := json.Marshal(record.Beat{Name: "later", Schema: record.Schema + 1, At: time.Now()})
	must(t, err)
	must(t, board.Put(t.Context(), record.KeyWorkerPrefix+"later", beat))
	must(t, p.WaitLog(t.Context(), "worker has another version"))

	// Campaigns of this version continue.
	next := submit(t, c, listFile(t, "next", 3), "--canary", "0")
	wantFinished(t, c, next, 3)

	// A worker refuses the cluster of a later coordinator.
	shared, err := json.Marshal(record.Cluster{Schema: record.Schema + 1, Store: c.Store(), AckWait: time.Minute})
	must(t, err)
	must(t, board.Put(t.Context(), record.KeyCluster, shared))
	cmd := command(t, "worker", "--simulate", "1s")
	e := end(t, with(cmd, c.Environment(RoleWorker, t.TempDir())...))
	if e.code == 0 {
		t.Error("a worker has joined the cluster of a later coordinator")
	}
	if e.stdout != "" {
		t.Errorf("a worker that never started reports %q", e.stdout)
	}
	wantMessage(t, e, "records up to version 1, the coordinator's have 2", "use one version of ddiff everywhere")
}

// TestClusterRights checks the permissions of docs/security: a worker cannot write campaigns, and a
// coordinator cannot write results, nor delete priors and records of coordinators.
func TestClusterRights(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{NATS: NATSOptions{Secure: true}})
	images := map[string][]byte{}
	for _, name := range []string{"chelsea", "coffee"} {
		images[name+".png"] = read(t, photograph(name))
	}
	must(t, c.PutImages(t.Context(), images))
	coordinator(t, c)
	worker(t, c, "--batch", "1")
	file := filepath.Join(t.TempDir(), "rights.yaml")
	write(t, file, []byte("name: rights\ndataset: {path: \""+c.Images()+"\", size: 64}\ntasks: [hdr]\nsteps: 5\n"))
	id := submit(t, c, file)
	wantFinished(t, c, id, 2)
	wantCode(t, ask(t, c, "list", "--all"), 0) // the leader answers
	for _, refused := range []struct {
		role Role
		key  string
	}{
		{RoleWorker, "campaigns/" + id + "/campaign.json"},
		{RoleWorker, "priors/mine.onnx"},
		{RoleWorker, "coordinators/cluster/items/000009.json"},
		{RoleCoordinator, id + "/items/forged/result.json"},
	} {
		if err := c.PutAs(t.Context(), refused.role, refused.key); err == nil {
			t.Errorf("the %s may write %s", refused.role, refused.key)
		}
	}
	store, err := c.S3.open(t.Context(), Bucket, c.keys[RoleCoordinator])
	must(t, err)
	defer store.Close()
	for _, key := range []string{"coordinators/cluster/000001.json", "priors/mine.onnx"} {
		if err := store.Delete(t.Context(), key); err == nil {
			t.Errorf("the coordinator may delete %s", key)
		}
	}
	for _, key := range []string{"/items/of-its-own/result.json", "/checkpoints/of-its-own", "/checkpoints/of-its-own.starts", "/probes/of-its-own"} {
		if err := c.PutAs(t.Context(), RoleWorker, id+key); err != nil {
			t.Errorf("the worker may not write %s: %v", key, err)
		}
	}
}
