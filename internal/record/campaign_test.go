package record

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
)

// checkError wants a text in an error; "" wants no error.
func checkError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func TestCampaignValidate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*Campaign)
		want   string
	}{
		{"smallest values", func(*Campaign) {}, ""},
		{"newest schema, largest weight", func(c *Campaign) { c.Schema, c.Weight = Schema, MaxWeight }, ""},
		{"lowest priority", func(c *Campaign) { c.Priority = PriorityLow }, ""},
		{"no schema", func(c *Campaign) { c.Schema = 0 }, "schema: "},
		{"newer schema", func(c *Campaign) { c.Schema = Schema + 1 }, "schema: "},
		{"no id", func(c *Campaign) { c.ID = "" }, "id: is missing"},
		{"no output", func(c *Campaign) { c.Output = "" }, "output: is missing"},
		{"canary", func(c *Campaign) { c.Canary = -1 }, "canary: -1 is negative"},
		{"round", func(c *Campaign) { c.Round = -4 }, "round or number is negative: -4, 0"},
		{"number", func(c *Campaign) { c.Number = -1 }, "round or number is negative: 0, -1"},
		{"no weight", func(c *Campaign) { c.Weight = 0 }, "weight: 0 is outside 1..1000"},
		{"weight", func(c *Campaign) { c.Weight = MaxWeight + 1 }, "weight: 1001 is outside 1..1000"},
		{"precision of one machine", func(c *Campaign) { c.Spec.Precision = manifest.PrecisionAuto }, "precision: auto is for ddiff run"},
		{"priority", func(c *Campaign) { c.Priority = "urgent" }, `priority: "urgent" is none of high, normal, low`},
	} {
		c := Campaign{Schema: 1, ID: "demo-00000000", Output: "demo", Weight: 1, Priority: PriorityNormal}
		tc.change(&c)
		checkError(t, tc.name, c.Validate(), tc.want)
	}
}

func TestCampaignIsOpen(t *testing.T) {
	t.Parallel()
	open := map[Phase]bool{PhasePreflight: true, PhaseCanary: true, PhaseRunning: true}
	ended := map[Phase]bool{PhaseFinished: true, PhaseCancelled: true, PhaseRejected: true}
	phases := []Phase{PhaseQueued, PhasePreflight, PhaseCanary, PhaseRunning, PhasePaused, PhaseFinished, PhaseCancelled, PhaseRejected}
	for _, p := range phases {
		if c := (Campaign{Wanted: WantRun, Phase: p}); c.Open() != open[p] {
			t.Errorf("%s: open is %t", p, c.Open())
		}
		if c := (Campaign{Wanted: WantPause, Phase: p}); c.Open() {
			t.Errorf("%s: open although a pause is wanted", p)
		}
		if p.Ended() != ended[p] {
			t.Errorf("%s: ended is %t", p, p.Ended())
		}
	}
}

// The names of pools are labels of metrics and parts of names on Kubernetes.
func TestPool(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", manifest.DefaultPool, "a100-spot", "0", strings.Repeat("a", 30)} {
		checkError(t, name, manifest.CheckPool(name), "")
	}
	for _, name := range []string{"", "A100", "-a", "a-", "a--b", "a_b", "a b", "ü", "a.b", strings.Repeat("a", 31)} {
		checkError(t, name, manifest.CheckPool(name), fmt.Sprintf("%q is no name of a pool; want at most 30 characters of a-z, 0-9 and single -", name))
	}
	if any, own := (Campaign{}), (Campaign{Spec: manifest.Spec{Pool: "a"}}); !any.MayUse("a") || !any.MayUse(manifest.DefaultPool) || !own.MayUse("a") || own.MayUse(manifest.DefaultPool) {
		t.Error("a campaign may use its pool, or all")
	}
}

func TestClusterValidate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster Cluster
		want    string
	}{
		"smallest values": {Cluster{Schema: 1, Store: "/store", AckWait: 1}, ""},
		"newest schema":   {Cluster{Schema: Schema, Store: "/store", AckWait: time.Minute}, ""},
		"no schema":       {Cluster{Store: "/store", AckWait: 1}, "schema: "},
		"newer schema":    {Cluster{Schema: Schema + 1, Store: "/store", AckWait: 1}, "schema: "},
		"no store":        {Cluster{Schema: 1, AckWait: 1}, "store: is missing"},
		"no lease":        {Cluster{Schema: 1, Store: "/store"}, "ack_wait_ns: 0 is not above 0"},
		"negative lease":  {Cluster{Schema: 1, Store: "/store", AckWait: -1}, "ack_wait_ns: -1 is not above 0"},
	} {
		checkError(t, name, tc.cluster.validate(), tc.want)
	}
	_, err := DecodeCluster(fmt.Appendf(nil, `{"schema":%d,"store":"/store","ack_wait_ns":"30s"}`, Schema+1))
	checkError(t, "newer schema with another type", err, "schema: ")
}
