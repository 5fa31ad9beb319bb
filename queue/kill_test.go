package queue_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"ddiff/queue"
)

// victimEnv names a directory; with it set, the test binary works on a queue there until it is killed.
const victimEnv = "DDIFF_TEST_QUEUE_VICTIM"

// runVictim publishes four items, acknowledges one, buries one, publishes a result, leaves one leased, prints "ready"
// and waits.
func runVictim(dir string) {
	if err := work(context.Background(), dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // blocks until the kill
}

func work(ctx context.Context, dir string) error {
	server, err := queue.StartEmbedded(ctx, queue.EmbeddedConfig{Dir: dir})
	if err != nil {
		return err
	}
	nc, err := server.Connect()
	if err != nil {
		return err
	}
	q, err := queue.Open(ctx, nc, queue.Config{Campaign: "camp"})
	if err != nil {
		return err
	}
	for _, id := range []string{"acked", "buried", "held", "waiting"} {
		if err := publish(ctx, q, "c", id, []byte(id)); err != nil {
			return err
		}
	}
	leases, err := q.Lease(ctx, 3, patience)
	if err != nil || len(leases) != 3 {
		return fmt.Errorf("%d leases, %w", len(leases), err)
	}
	if err := q.PublishResult(ctx, "acked", 0, []byte("result")); err != nil {
		return err
	}
	if err := leases[0].Ack(ctx); err != nil {
		return err
	}
	return leases[1].Bury(ctx, queue.Dead{ID: "buried", Reason: "on purpose"})
}

func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimEnv+"="+dir)
	stdin, err := victim.StdinPipe()
	must(t, err)
	defer stdin.Close() // the process was killed
	stdout, err := victim.StdoutPipe()
	must(t, err)
	must(t, victim.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the process printed %q, %v", line, err)
	}
	must(t, victim.Process.Kill())
	victim.Wait() //nolint:errcheck // it was killed

	q := open(t, start(t, dir), queue.Config{AckWait: shortWait})
	left := map[string]bool{"held": true, "waiting": true}
	for deadline := time.Now().Add(patience); len(left) > 0; {
		l := lease(t, q)
		if !left[l.ID()] || string(l.Payload()) != l.ID() {
			t.Fatalf("leased %s with payload %q, want one of %v", l.ID(), l.Payload(), left)
		}
		delete(left, l.ID())
		must(t, l.Ack(t.Context()))
		if time.Now().After(deadline) {
			t.Fatalf("items %v are lost", left)
		}
	}
	if got := results(t, q, 1); got["acked"] != "result" {
		t.Fatalf("results %v", got)
	}
	letters := deadLetters(t, q)
	if len(letters) != 1 || letters[0].Reason != "on purpose" {
		t.Fatalf("dead letters %+v", letters)
	}
}
