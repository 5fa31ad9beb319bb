package testbed

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// soak is a cluster that holds a constant number of campaigns while new ones come and old ones are deleted.
type soak struct {
	*Cluster
	t        *testing.T
	campaign int // number of the next one
	list     string
	board    *queue.Board
	store    *storage.Dir
	metrics  string
	lead     *Process
	work     *Process
	all      []string // in the order of their submission
}

// growth is what must not grow with the number of campaigns that were deleted.
type growth struct {
	goroutines, descriptors, workerDescriptors, serverDescriptors, files int
	memory, workerMemory, serverMemory                                   int64 // bytes
	processor                                                            time.Duration
}

func (g growth) String() string {
	return fmt.Sprintf("leader: goroutines=%d descriptors=%d MiB=%d seconds=%.1f worker: descriptors=%d MiB=%d NATS: descriptors=%d MiB=%d store: files=%d",
		g.goroutines, g.descriptors, g.memory>>20, g.processor.Seconds(), g.workerDescriptors, g.workerMemory>>20, g.serverDescriptors, g.serverMemory>>20, g.files)
}

// TestAttackSoak submits, archives, recalls and deletes campaigns and collects garbage, fifty campaigns at a time for a minute, or
// DDIFF_SOAK_CAMPAIGNS for DDIFF_SOAK. Neither goroutines nor descriptors, memory or files of the store grow with the number of campaigns
// that have been.
func TestAttackSoak(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	during, n := time.Minute, 50
	if s := os.Getenv("DDIFF_SOAK"); s != "" {
		var err error
		during, err = time.ParseDuration(s)
		must(t, err)
		n, err = strconv.Atoi(os.Getenv("DDIFF_SOAK_CAMPAIGNS"))
		must(t, err)
	}
	s := newSoak(t)
	for len(s.all) < n {
		s.submit(n / 10)
	}
	s.round(n/10, n)
	first, begin := s.measure(), time.Now()
	t.Logf("campaigns=%d %v", s.campaign, first)
	last, logged := first, time.Now()
	for time.Since(begin) < during {
		s.round(n/10, n)
		last = s.measure()
		if time.Since(logged) > during/20 {
			logged = time.Now()
			t.Logf("seconds=%.0f campaigns=%d %v", time.Since(begin).Seconds(), s.campaign, last)
		}
	}
	for end := time.Now().Add(time.Minute); last.goroutines > first.goroutines+20 && time.Now().Before(end); last = s.measure() {
		time.Sleep(time.Second) // after a stall of the machine
	}
	t.Logf("seconds=%.0f campaigns=%d %v", time.Since(begin).Seconds(), s.campaign, last)
	defer func() {
		if t.Failed() {
			logProcesses(t, s.Cluster)
		}
	}()
	for _, x := range []struct {
		what           string
		before, after  int64
		share, besides int64 // of permitted growth, in per cent and in units
	}{
		{"goroutines of the leader", int64(first.goroutines), int64(last.goroutines), 10, 20},
		{"descriptors of the leader", int64(first.descriptors), int64(last.descriptors), 0, 10},
		{"descriptors of the worker", int64(first.workerDescriptors), int64(last.workerDescriptors), 0, 10},
		{"descriptors of NATS", int64(first.serverDescriptors), int64(last.serverDescriptors), 0, 10},
		{"bytes of the leader", first.memory, last.memory, 25, 32 << 20},
		{"bytes of the worker", first.workerMemory, last.workerMemory, 25, 16 << 20},
		{"files of the store but marks of deletions", int64(first.files), int64(last.files), 10, 20},
	} {
		if x.after > x.before+x.before*x.share/100+x.besides {
			t.Errorf("%s: %d with %d campaigns, %d after %d deletions", x.what, x.before, n, x.after, s.campaign-len(s.all))
		}
	}
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{Cluster: startCluster(t, Options{Directory: true, Lease: 30 * time.Second, Election: 30 * time.Second, Stall: 30 * time.Second}), t: t, list: t.TempDir(), metrics: listening(t)}
	s.lead = s.NewCoordinator("--nats-wait", "30s", "--archive-after", "5s", "--metrics-listen", s.metrics)
	must(t, s.lead.Start())
	must(t, s.lead.WaitLog(t.Context(), "coordinator is ready"))
	s.work = worker(t, s.Cluster, "--simulate", "5ms", "--simulate-workers", "4")
	_, err := writeCampaign(s.list, "soak", 2)
	must(t, err)
	nc, err := s.NATS.connect(t.Context(), RoleCoordinator)
	must(t, err)
	t.Cleanup(nc.Close)
	s.board, err = queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	s.store, err = storage.NewDir(s.Store())
	must(t, err)
	return s
}

// submit submits campaigns and waits for their ends.
func (s *soak) submit(n int) {
	s.t.Helper()
	ctx := s.t.Context()
	from := len(s.all)
	for range n {
		spec := manifest.Default()
		spec.Name, spec.Dataset.Path = fmt.Sprintf("soak-%06d", s.campaign), filepath.Join(s.list, "soak.csv")
		spec.Tasks = []item.Task{{Name: tasks[0]}}
		s.campaign++
		id, err := submitVerb(ctx, s.board, spec)
		must(s.t, err)
		s.all = append(s.all, id)
	}
	for _, id := range s.all[from:] {
		s.await(id, "finished", func(c *record.Campaign) bool { return c == nil || c.Phase == record.PhaseFinished })
	}
}

// await waits until the record of a campaign is as wanted; nil is the record of an archived one.
func (s *soak) await(id, what string, wanted func(c *record.Campaign) bool) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := board.Read(s.t.Context(), s.board, id)
		if err != nil {
			c = nil
		}
		if wanted(c) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("campaign %s is not %s: %+v %v\n%s", id, what, c, err, tail(s.lead.Log()))
		}
	}
}

// round replaces the oldest campaigns, which are archived before, or by their deletion.
func (s *soak) round(n, population int) {
	s.t.Helper()
	s.submit(n)
	old := slices.Clone(s.all[:max(0, len(s.all)-population)])
	s.all = s.all[len(old):]
	for _, id := range old {
		wantCode(s.t, ask(s.t, s.Cluster, "delete", id, "--results", "--yes"), 0)
	}
	wantCode(s.t, ask(s.t, s.Cluster, "gc", "--store", s.Store(), "--yes"), 0)
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// measure reads the sizes of processes and store. The leader lists its records every second or two, by 65 goroutines for a moment: the
// least of the readings of a second is without them.
func (s *soak) measure() (g growth) {
	s.t.Helper()
	g.goroutines = math.MaxInt
	for range 20 {
		_, text := probe(s.t, s.metrics, "/metrics")
		found := goroutines.FindStringSubmatch(text)
		if found == nil {
			s.t.Fatalf("no goroutines in the metrics:\n%s", text)
		}
		n, err := strconv.Atoi(found[1])
		must(s.t, err)
		g.goroutines = min(g.goroutines, n)
		sleep(s.t.Context(), 50*time.Millisecond)
	}
	var err error
	for _, x := range []struct {
		p           *Process
		descriptors *int
		memory      *int64
	}{{s.lead, &g.descriptors, &g.memory}, {s.work, &g.workerDescriptors, &g.workerMemory}, {s.NATS.Servers[0], &g.serverDescriptors, &g.serverMemory}} {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", x.p.PID()))
		must(s.t, err)
		*x.descriptors = len(open)
		*x.memory, err = residentMemory(x.p.PID())
		must(s.t, err)
	}
	g.processor, err = processorTime(s.lead.PID())
	must(s.t, err)
	g.files = s.countFiles(s.t.Context())
	return g
}

// countFiles counts the objects of the store without the marks of deletions.
func (s *soak) countFiles(ctx context.Context) (n int) {
	s.t.Helper()
	for info, err := range s.store.List(ctx, "") {
		must(s.t, err)
		if ok, err := filepath.Match("campaigns/.index/*.deleted.*", info.Key); err == nil && !ok {
			n++
		}
	}
	return n
}
