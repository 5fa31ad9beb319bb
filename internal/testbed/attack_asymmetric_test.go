package testbed

import (
	"os"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
)

// TestAttackAsymmetric lets one coordinator reach NATS and not S3, and the other one S3 and not NATS, and then changes the two every few
// seconds, for half a minute or DDIFF_FLAP. Workers go on with what is published, and the campaign ends with all its results.
func TestAttackAsymmetric(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	during := 30 * time.Second
	if s := os.Getenv("DDIFF_FLAP"); s != "" {
		var err error
		during, err = time.ParseDuration(s)
		must(t, err)
	}
	c := startCluster(t, Options{})
	network, err := newNetwork(t.Context(), c.S3.Address)
	must(t, err)
	t.Cleanup(network.close)
	c.Through(network.address)
	var queues []*toxiproxy.Proxy
	for range 2 {
		toxic, address, err := startToxic(t.Context(), "nats", c.NATS.clients[0])
		must(t, err)
		t.Cleanup(toxic.Stop)
		queues = append(queues, toxic)
		p := c.NewCoordinator("--nats-wait", "30s")
		p.env = append(p.env, "DDIFF_NATS_URL=nats://"+address)
		begin(t, p, "coordinator is ready")
	}
	simulated(t, c, 200*time.Millisecond)
	// In a long division workers finish what is published, 4,096 items: no coordinator reaches both long enough to publish others.
	items := 300 + 5*int(min(during, 15*time.Minute).Seconds())
	id := submit(t, c, listFile(t, "asymmetric", items), "--canary", "0")
	settled(t, c, id, 5)
	// cut lets a coordinator reach no S3 and the other one no NATS, until the caller calls heal.
	cut := func(i int) (heal func()) {
		keys, own := c.keys[Role(c.Coordinators[i].Name)]
		if !own {
			t.Fatalf("%s has no keys of its own", c.Coordinators[i].Name)
		}
		end := network.refuse(unavailable.of(keys.Access))
		must(t, addToxic(queues[1-i], "timeout", "upstream", `{"timeout": 0}`))
		return func() {
			end()
			must(t, queues[1-i].Toxics.RemoveToxic(t.Context(), "timeout-upstream"))
		}
	}
	before := c.Settled(id)
	heal := cut(0)
	time.Sleep(15 * time.Second)
	heal()
	t.Logf("divided: %d results, then %d", before, c.Settled(id))
	for begin, i := time.Now(), 1; time.Since(begin) < during; i = 1 - i {
		before := c.Settled(id)
		for _, pause := range []time.Duration{3 * time.Second, 4 * time.Second} {
			heal := cut(i)
			time.Sleep(pause)
			heal()
			i = 1 - i
		}
		time.Sleep(time.Second)
		t.Logf("changing: %d results, then %d", before, c.Settled(id))
	}
	settled(t, c, id, min(items, c.Settled(id)+20))
	wantFinished(t, c, id, items)
	if n := c.Settled(id); n != items {
		t.Errorf("%d results, want %d", n, items)
	}
}
