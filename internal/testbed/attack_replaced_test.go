package testbed

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAttackNATSReplaced gives a running campaign three replicas of each stream in place of one, as docs/cluster.md says, and then replaces each
// of the three NATS servers by an empty one.
func TestAttackNATSReplaced(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Servers: 3}})
	first := c.NewCoordinator("--nats-wait", "30s", "--replicas", "1")
	begin(t, first, "coordinator is ready")
	simulated(t, c, 100*time.Millisecond)
	const items = 400
	id := submit(t, c, listFile(t, "replaced", items), "--canary", "0")
	settled(t, c, id, 10)
	_, err := first.Stop(20 * time.Second)
	must(t, err)
	must(t, c.NATS.DeleteStream(t.Context(), StreamWork))
	coordinator(t, c)
	for i, p := range c.NATS.Servers {
		settled(t, c, id, c.Settled(id)+20)
		for k := range c.NATS.Servers { // all replicas have all messages
			must(t, c.NATS.Ready(t.Context(), k))
		}
		p.Kill()
		must(t, os.RemoveAll(filepath.Join(c.o.Dir, "nats", p.Name)))
		must(t, p.Start())
		must(t, c.NATS.Ready(t.Context(), i))
	}
	wantFinished(t, c, id, items)
	if n := c.Settled(id); n != items {
		t.Errorf("%d results, want %d", n, items)
	}
}
