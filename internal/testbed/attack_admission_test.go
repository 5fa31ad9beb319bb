package testbed

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestAttackAdmission submits 1,600 campaigns of one item without a worker, and measures the processor time of the leader for each
// new campaign, the time of the list of all campaigns, and the memory of the leader. The time for a campaign does not grow with their
// number, and 1,000 take at most 256 MiB.
func TestAttackAdmission(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{Election: 15 * time.Second})
	p := coordinator(t, c)
	nc, err := c.NATS.connect(t.Context(), RoleCoordinator)
	must(t, err)
	defer nc.Close()
	kv, err := queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	dir := t.TempDir()
	_, err = writeCampaign(dir, "small", 1)
	must(t, err)
	var first, last time.Duration
	n := 0
	for _, until := range []int{200, 400, 800, 1000, 1600} {
		before, err := processorTime(p.PID())
		must(t, err)
		from, begin := n, time.Now()
		var id string
		for ; n < until; n++ {
			spec := manifest.Default()
			spec.Name, spec.Dataset.Path = fmt.Sprintf("small-%04d", n), filepath.Join(dir, "small.csv")
			spec.Tasks = []item.Task{{Name: tasks[0]}}
			id, err = submitVerb(t.Context(), kv, spec)
			must(t, err)
			if n%20 == 19 { // about as fast as they are admitted
				awaitPreflight(t, kv, id)
			}
		}
		awaitPreflight(t, kv, id)
		after, err := processorTime(p.PID())
		must(t, err)
		each := (after - before) / time.Duration(until-from)
		memory, err := residentMemory(p.PID())
		must(t, err)
		took := time.Since(begin)
		begun, cmd := time.Now(), c.Command(t.Context(), "list", "--all")
		e := end(t, cmd)
		list, listCPU := time.Since(begun), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
		if e.code != 0 {
			logProcesses(t, c)
		}
		wantCode(t, e, 0)
		t.Logf("campaigns=%d leader_ms_each=%.1f seconds=%.0f leader_mib=%d list_all_s=%.2f list_all_cpu_s=%.2f", until,
			each.Seconds()*1000, took.Seconds(), memory>>20, list.Seconds(), listCPU.Seconds())
		if until == 1000 && memory > 256<<20 {
			t.Errorf("1,000 waiting campaigns take %d MiB of the leader", memory>>20)
		}
		if from == 0 {
			first = each
		}
		last = each
	}
	if last > 3*first { // other processes on the machine double it; it was 3.6 times as long when admission was quadratic
		t.Errorf("a campaign cost the leader %v with 200 campaigns and %v with 1,600", first, last)
	}
}

// awaitPreflight waits until a campaign waits for a worker.
func awaitPreflight(t *testing.T, b *queue.Board, id string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := board.Read(t.Context(), b, id)
		must(t, err)
		if c.Phase == record.PhasePreflight {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("campaign %s is %s: %s", id, c.Phase, c.Reason)
		}
	}
}
