package testbed

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestOperatePools runs two pools of workers under one coordinator: a campaign is restored by the pool for which it asks, one that asks for
// none by both, and one whose pool has no worker waits for it. The solver's time counts to the owner of the API token.
func TestOperatePools(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	c := startCluster(t, Options{})
	must(t, c.PutImages(t.Context(), map[string][]byte{"a.png": read(t, photograph("chelsea")), "b.png": read(t, photograph("coffee"))}))
	api, lead := listening(t), listening(t)
	begin(t, c.NewCoordinator("--nats-wait", "30s", "--listen", api, "--require-tokens", "--metrics-listen", lead, "--pools", "small,large,none"), "coordinator is ready")
	join := func(pool string) (metrics string) {
		metrics = listening(t)
		worker(t, c, "--pool", pool, "--batch", "1", "--metrics-listen", metrics)
		return metrics
	}
	small, large := join("small"), join("large")
	file := func(name, pool string) string {
		path := filepath.Join(t.TempDir(), name+".yaml")
		write(t, path, []byte("name: "+name+"\ndataset: {path: \""+c.Images()+"\", size: 64}\ntasks: [hdr, denoise, super_resolution, gaussian_deblur]\nsteps: 4\n"+pool))
		return path
	}
	// sum adds the series of a process that match a pattern.
	sum := func(t *testing.T, address, series string) (total float64) {
		t.Helper()
		_, text := probe(t, address, "/metrics")
		for _, m := range regexp.MustCompile(`(?m)^`+series+` (\S+)$`).FindAllStringSubmatch(text, -1) {
			v, err := strconv.ParseFloat(m[1], 64)
			must(t, err)
			total += v
		}
		return total
	}
	done := func(t *testing.T, worker string) float64 {
		return sum(t, worker, `ddiff_items_total\{.*outcome="done".*\}`)
	}
	lag := func(t *testing.T, pool string) float64 { return sum(t, lead, `ddiff_queue_lag\{.*pool="`+pool+`"\}`) }
	takeSteps(t, []step{
		{"one pool", func(t *testing.T) {
			wantFinished(t, c, submit(t, c, file("asks", "pool: large\n"), "--canary", "0"), 8)
			if s, l := done(t, small), done(t, large); s != 0 || l != 8 {
				t.Errorf("%v results of pool small, %v of pool large; want 0 and 8", s, l)
			}
		}},
		{"both pools", func(t *testing.T) {
			wantFinished(t, c, submit(t, c, file("any", ""), "--canary", "0"), 8)
			if s, l := done(t, small), done(t, large); s == 0 || s+l != 16 {
				t.Errorf("%v results of pool small, %v of pool large; want some of small, and 16 in all", s, l)
			}
		}},
		{"pool without workers", func(t *testing.T) {
			id := submit(t, c, file("waits", "pool: none\n"), "--canary", "0")
			for deadline := time.Now().Add(30 * time.Second); lag(t, "none") == 0 && time.Now().Before(deadline); {
				sleep(t.Context(), time.Second)
			}
			if s, l, n := lag(t, "small"), lag(t, "large"), lag(t, "none"); s != 0 || l != 0 || n == 0 {
				t.Errorf("%v items wait for pool small, %v for pool large, %v for pool none; want 0, 0 and some", s, l, n)
			}
			if e := ask(t, c, "status", id); !strings.Contains(e.stdout, "waiting for a worker of pool none") {
				t.Errorf("the status does not name the pool without workers: %v", e)
			}
			join("none")
			wantFinished(t, c, id, 8)
		}},
		{"owner", func(t *testing.T) {
			token := ask(t, c, "token", "create", "--owner", "ann", "--role", "submitter")
			wantCode(t, token, 0)
			found := regexp.MustCompile(`ddiff_\w+`).FindString(token.stdout)
			cmd := with(c.Command(t.Context(), "submit", file("owned", "pool: small\n"), "--server", "http://"+api, "--canary", "0"), "DDIFF_TOKEN="+found)
			e := end(t, cmd)
			wantCode(t, e, 0)
			id := strings.TrimSpace(e.stdout)
			wantFinished(t, c, id, 8)
			if seconds := sum(t, small, fmt.Sprintf(`ddiff_solver_time_seconds_total\{campaign=%q,.*owner="ann"\}`, id)); seconds == 0 {
				t.Error("no time in the solver counts to the owner")
			}
		}},
	})
}
