package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
)

// TestAttackNATSDiskFull fills the disk of the NATS server, or of the leader of the work stream of three, while a campaign runs. The
// server does not recover when there is space again: it is restarted, as docs/operations.md says.
func TestAttackNATSDiskFull(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint("servers=", servers), func(t *testing.T) {
			c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Servers: servers}})
			dir := func(p *Process) string { return filepath.Join(c.o.Dir, "nats", p.Name) }
			c.NATS.Kill()
			for _, p := range c.NATS.Servers {
				must(t, os.RemoveAll(dir(p)))
				if err := p.OwnDisk(dir(p), 64<<20); err != nil {
					t.Skipf("no mounts here: run it as root, or where user namespaces are allowed: %v", err)
				}
				must(t, p.Start())
			}
			for i := range c.NATS.Servers {
				must(t, c.NATS.Ready(t.Context(), i))
			}
			p, w := coordinator(t, c), simulated(t, c, 50*time.Millisecond)
			const items = 400
			id := submit(t, c, listFile(t, "full", items), "--canary", "0")
			settled(t, c, id, 10)
			leader := 0
			if servers > 1 {
				var err error
				leader, err = c.NATS.StreamLeader(t.Context(), StreamWork)
				must(t, err)
			}
			server := c.NATS.Servers[leader]
			must(t, server.FillDisk())
			must(t, server.WaitLog(t.Context(), "no space left on device"))
			if servers > 1 {
				settled(t, c, id, c.Settled(id)+100)
			} else {
				must(t, p.WaitLog(t.Context(), "context deadline exceeded"))
				must(t, w.WaitLog(t.Context(), "context deadline exceeded"))
			}
			must(t, server.FreeDisk())
			copied := filepath.Join(t.TempDir(), "copied") // its own disk ends with the process
			must(t, os.CopyFS(copied, os.DirFS(fmt.Sprintf("/proc/%d/root%s", server.PID(), dir(server)))))
			server.Kill()
			server.disk = nil
			must(t, os.CopyFS(dir(server), os.DirFS(copied)))
			must(t, server.Start())
			wantFinished(t, c, id, items)
			if n := c.Settled(id); n != items {
				t.Errorf("%d results, want %d", n, items)
			}
		})
	}
}

// paths are the connections between the servers of a NATS cluster: paths[i][j] is that of server i to server j.
type paths [][]*toxiproxy.Proxy

var route = regexp.MustCompile(`nats-route://([^"]+)`)

// newPaths restarts the servers with a proxy on each path.
func newPaths(t *testing.T, c *Cluster) paths {
	t.Helper()
	all := make(paths, len(c.NATS.Servers))
	c.NATS.Kill()
	for i, p := range c.NATS.Servers {
		file := filepath.Join(c.o.Dir, "nats", p.Name+".conf")
		text := string(read(t, file))
		all[i] = make([]*toxiproxy.Proxy, len(all))
		for j, found := range route.FindAllStringSubmatch(text, -1) {
			address := "127.0.0.1:1" // no server
			if i != j {
				var err error
				all[i][j], address, err = startToxic(t.Context(), fmt.Sprint(i, "-", j), found[1])
				must(t, err)
				t.Cleanup(all[i][j].Stop)
			}
			text = strings.Replace(text, `"`+found[0]+`"`, `"nats-route://`+address+`"`, 1)
		}
		// Servers must not learn an address without a proxy.
		text = strings.Replace(text, "  routes: [", "  advertise: \"127.0.0.1:1\"\n  routes: [", 1)
		write(t, file, []byte(text))
		must(t, p.Start())
	}
	for i := range c.NATS.Servers {
		must(t, c.NATS.Ready(t.Context(), i))
	}
	return all
}

// each calls f with the paths of a server, in both directions.
func (p paths) each(i int, f func(*toxiproxy.Proxy)) {
	for j := range p {
		if j != i {
			f(p[i][j])
			f(p[j][i])
		}
	}
}

// TestAttackPartition separates a server with a coordinator and a worker from the other two servers while a campaign runs: first that
// of the leading coordinator, then that of the leader of the work stream.
func TestAttackPartition(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Servers: 3}})
	all := newPaths(t, c)
	for i := range 2 {
		for _, p := range []*Process{c.NewCoordinator("--nats-wait", "30s"), c.NewWorker("--simulate", "200ms", "--nats-wait", "30s")} {
			p.env = append(p.env, "DDIFF_NATS_URL=nats://"+c.NATS.clients[i])
			must(t, p.Start())
			must(t, p.WaitLog(t.Context(), " is ready"))
		}
	}
	const items = 500
	id := submit(t, c, listFile(t, "divided", items), "--canary", "0")
	settled(t, c, id, 10)
	cut := 0
	for round := range 2 {
		if round == 1 {
			var err error
			cut, err = c.NATS.StreamLeader(t.Context(), StreamWork)
			must(t, err)
		}
		before := c.Settled(id)
		t.Logf("separate %s after %d results", c.NATS.Servers[cut].Name, before)
		all.each(cut, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, addToxic(p, "timeout", stream, `{"timeout": 0}`))
			}
		})
		begin := time.Now()
		if round == 0 {
			must(t, c.Coordinators[1].WaitLog(t.Context(), "msg=leading"))
			settled(t, c, id, before+40) // by the side of two servers
		}
		time.Sleep(time.Until(begin.Add(30 * time.Second))) // longer than all elections
		t.Logf("together after %v with %d results", time.Since(begin), c.Settled(id))
		all.each(cut, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, p.Toxics.RemoveToxic(t.Context(), "timeout-"+stream))
			}
		})
		settled(t, c, id, min(c.Settled(id)+40, items))
	}
	wantFinished(t, c, id, items)
	if n := c.Settled(id); n != items {
		t.Errorf("%d results, want %d", n, items)
	}
}
