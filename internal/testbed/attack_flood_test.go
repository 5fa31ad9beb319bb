package testbed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// falseBeats is the number of beats of workers that do not exist.
const falseBeats = 20_000

// TestAttackBeats sends false beats with the credentials of a worker. The list of workers answers at once, and says whose credentials to
// renew; the leader keeps its lead and its campaign goes on, removes the records, and then knows the living worker again.
func TestAttackBeats(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Secure: true}})
	leader := coordinator(t, c)
	coordinator(t, c) // would lead next
	simulated(t, c, 50*time.Millisecond)
	id := submit(t, c, listFile(t, "beside", 3000), "--canary", "0")
	settled(t, c, id, 1)
	nc, err := c.NATS.connect(t.Context(), RoleWorker)
	must(t, err)
	defer nc.Close()
	board, err := queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	since := leaderOf(t, board)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(128)
	for i := range falseBeats {
		beat, err := json.Marshal(record.Beat{Name: fmt.Sprintf("false-%05d", i), Schema: record.Schema, At: time.Now(), Device: "\x1b[2Jphase finished\r"})
		must(t, err)
		group.Go(func() error { return board.Put(ctx, fmt.Sprintf("%sfalse-%05d", record.KeyWorkerPrefix, i), beat) })
	}
	must(t, group.Wait())
	begin := time.Now()
	cmd := c.Command(t.Context(), "workers")
	e := end(t, cmd)
	took, cpu := time.Since(begin), cmd.ProcessState.SystemTime()+cmd.ProcessState.UserTime()
	if e.code == 0 || cpu > 3*time.Second || took > 20*time.Second {
		t.Errorf("the list of flooded workers took %v and %v of a processor: %.300v", took, cpu, e)
	}
	wantMessage(t, e, "too many records of workers", "renew the credentials")
	before := c.Settled(id)
	settled(t, c, id, min(before+20, 3000))
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(time.Second) {
		e = ask(t, c, "workers", "--json")
		var beats []record.Beat
		// Beats that came while the leader removed the others stay: they are fewer than its limit.
		living := func(b record.Beat) bool { return !strings.HasPrefix(b.Name, "false-") }
		if e.code == 0 && json.Unmarshal([]byte(e.stdout), &beats) == nil && slices.ContainsFunc(beats, living) {
			break
		}
		if time.Now().After(end) {
			logProcesses(t, c)
			t.Fatalf("the living worker is not listed: %.500v", e)
		}
	}
	if now := leaderOf(t, board); now != since {
		t.Errorf("another term leads: %s, then %s", since, now)
	}
	recovered, err := processorTime(leader.PID())
	must(t, err)
	t.Logf("beats=%d workers_s=%.2f workers_cpu_s=%.2f leader_cpu_s=%.1f", falseBeats, took.Seconds(), cpu.Seconds(), recovered.Seconds())
}

// leaderOf returns the leader and the begin of its term.
func leaderOf(t *testing.T, board *queue.Board) string {
	t.Helper()
	data, _, err := board.Get(t.Context(), queue.KeyLeader)
	must(t, err)
	var l queue.Leader
	must(t, json.Unmarshal(data, &l))
	return l.Name + " " + l.Since.String()
}
