package testbed

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAttackStoreOfAnother starts a cluster with empty NATS servers on the store of another one, as its supervisor does again and again: while
// the other one works, after its only coordinator got SIGTERM, and while its NATS server is away. A person moves the store in the end.
func TestAttackStoreOfAnother(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	a := startCluster(t, Options{Directory: true})
	first := coordinator(t, a)
	simulated(t, a, 100*time.Millisecond)
	const items = 100
	id := submit(t, a, listFile(t, "stolen", items), "--canary", "0")
	settled(t, a, id, 5)

	b := startCluster(t, Options{Directory: true})
	second := b.NewCoordinator("--nats-wait", "30s", "--store", a.Store())
	refusedOwner(t, second)
	code, err := first.Stop(20 * time.Second)
	must(t, err)
	if code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	refusedOwner(t, second)
	begin(t, first, "coordinator is ready")
	settled(t, a, id, a.Settled(id)+5)
	a.NATS.Servers[0].Kill()
	refusedOwner(t, second)
	must(t, a.NATS.Servers[0].Start())
	must(t, a.NATS.Ready(t.Context(), 0))
	wantFinished(t, a, id, items)

	name := refusedOwner(t, second)
	third := b.NewCoordinator("--nats-wait", "30s", "--store", a.Store(), "--take-over-store", name)
	begin(t, third, "took over the store from another cluster")
	select {
	case <-first.Exited():
	case <-time.After(commandLimit):
		t.Fatal("the former owner leads on")
	}
	want := "coordinator " + third.Name + " took it over from " + name
	if log := first.Log(); first.Code() != 2 || !strings.Contains(log, want) {
		t.Errorf("the former owner ended with code %d, want 2 and %q:\n%s", first.Code(), want, tail(log))
	}
	third.Kill()
	begin(t, third, "coordinator is ready") // with the same flag
	wantFinished(t, b, id, items)
}

// refusedOwner starts a coordinator that the store refuses, and returns the name that its error has for --take-over-store.
func refusedOwner(t *testing.T, p *Process) string {
	t.Helper()
	must(t, p.Start())
	select {
	case <-p.Exited():
	case <-time.After(commandLimit):
		t.Fatalf("%s uses the store of another cluster:\n%s", p.Name, tail(p.Log()))
	}
	found := regexp.MustCompile(`--take-over-store ([a-z0-9]+)`).FindStringSubmatch(p.Log())
	if p.Code() != 2 || found == nil {
		t.Fatalf("%s ended with code %d, want 2 and a remedy:\n%s", p.Name, p.Code(), tail(p.Log()))
	}
	return found[1]
}
