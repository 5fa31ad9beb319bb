package testbed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"

	"ddiff/queue"
)

// The size of TestAPIScale: one campaign of scaledItems beside small ones, and the pages that people have open.
const (
	scaledItems, scaledCampaigns = 100_000, 300
	scaledWorkers                = 200
	scaledPages, scaledStreams   = 4, 40
	scaledTime                   = 40 * time.Second
	// The limits.
	scaledP99, scaledPaint = 100 * time.Millisecond, time.Second
	scaledMiB              = 512
	// scaledOthers is the share of the processors that other programs may take: with more, the limits of time are not checked.
	scaledOthers = 0.05
)

// TestAPIScale measures the calls of the page on a coordinator with 300 campaigns, one of them with 100,000 items, at which 200 simulated workers
// work, while event streams are open: four clients beside each other, each with ten calls a second. Then a browser opens the large campaign. It prints
//
//	api campaigns=N items=N workers=N calls=N events=N p50_ms=N p99_ms=N slowest=CALL rss_mib=N paint_ms=N items_ms=N others=0.xx
//
// paint_ms is the first paint, items_ms the time until the first items are shown, and others the share of the processors that other programs took.
func TestAPIScale(t *testing.T) {
	onlyBy(t, "make api-test", "DDIFF_API_SCALE")
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := Start(ctx, Options{
		Dir: dir, Program: program, Directory: true, Lease: time.Minute, Election: 10 * time.Second, Stall: 15 * time.Second,
		NATS: NATSOptions{Servers: 1, MaxFile: 16 << 30},
	})
	t.Cleanup(c.Stop)
	must(t, err)
	address, err := FreeAddress(ctx)
	must(t, err)
	coordinator, err := c.AddCoordinator(ctx, "--listen", address)
	must(t, err)
	worker, err := c.AddWorker(ctx, "--simulate", "2s", "--simulate-workers", fmt.Sprint(scaledWorkers))
	must(t, err)
	large := scaledCluster(ctx, t, c, dir)
	begin := time.Now()
	s := &scaled{base: "http://" + address + "/api/v1/", large: large, times: map[string][]time.Duration{}}
	if _, err := s.call(ctx, "items", "campaigns/"+large+"/items?limit=100"); err != nil {
		t.Fatal(err)
	}
	t.Logf("the first list of %d items after %v", scaledItems, time.Since(begin).Round(time.Millisecond))
	s.follow(ctx, t)
	others, err := otherPrograms(func() { s.measure(ctx, t) }, os.Getpid(), coordinator.PID(), worker.PID(), c.NATS.Servers[0].PID())
	must(t, err)
	peak, err := peakMemory(coordinator.PID())
	must(t, err)
	paint, shown := s.paint(t)

	var all []time.Duration
	slowest, worst := "", time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(s.times)) {
		took := s.times[name]
		slices.Sort(took)
		t.Logf("%-24s n=%-5d p50=%-8v p99=%-8v max=%v", name, len(took), at(took, 0.5), at(took, 0.99), took[len(took)-1].Round(100*time.Microsecond))
		if p99 := at(took, 0.99); p99 > worst {
			slowest, worst = name, p99
		}
		all = append(all, took...)
	}
	slices.Sort(all)
	fmt.Printf("api campaigns=%d items=%d workers=%d calls=%d events=%d p50_ms=%.1f p99_ms=%.1f slowest=%s rss_mib=%d paint_ms=%d items_ms=%d others=%.2f\n", scaledCampaigns, scaledItems, scaledWorkers,
		len(all), s.events.Load(), ms(at(all, 0.5)), ms(at(all, 0.99)), slowest, peak>>20, paint.Milliseconds(), shown.Milliseconds(), others)
	if peak>>20 > scaledMiB {
		t.Errorf("the coordinator took %d MiB, want at most %d", peak>>20, scaledMiB)
	}
	if s.events.Load() < scaledStreams*int64(scaledTime/time.Second) {
		t.Errorf("%d events on %d streams: the cluster stood still", s.events.Load(), scaledStreams)
	}
	if others > scaledOthers {
		t.Logf("other programs took %.0f %% of the processors: the limits of time are not checked", 100*others)
		return
	}
	if p99 := at(all, 0.99); p99 > scaledP99 {
		t.Errorf("p99 of the calls is %v, want at most %v", p99, scaledP99)
	}
	if paint > scaledPaint {
		t.Errorf("the first paint of the large campaign's page was after %v, want at most %v", paint, scaledPaint)
	}
}

// otherPrograms returns the share of the processors that programs other than those of pids took during do.
func otherPrograms(do func(), pids ...int) (float64, error) {
	read := func() (busy, total int64, own time.Duration, err error) {
		data, err := os.ReadFile("/proc/stat")
		if err != nil {
			return 0, 0, 0, err
		}
		line, _, _ := strings.Cut(string(data), "\n")
		for i, text := range strings.Fields(line)[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return 0, 0, 0, err
			}
			if total += n; i != 3 && i != 4 {
				busy += n
			}
		}
		all, err := times(pids...)
		for _, t := range all {
			own += t
		}
		return busy, total, own, err
	}
	busy, total, own, err := read()
	if err != nil {
		return 0, err
	}
	do()
	busy2, total2, own2, err := read()
	return (float64(busy2-busy) - (own2-own).Seconds()*ticks) / float64(total2-total), err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// at returns a quantile of sorted times.
func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1].Round(100 * time.Microsecond)
}

// scaledCluster submits the campaigns, waits until they are published, and returns the id of the large one.
func scaledCluster(ctx context.Context, t *testing.T, c *Cluster, dir string) string {
	t.Helper()
	file, err := writeCampaign(dir, "large", scaledItems)
	must(t, err)
	large, err := submitCampaign(ctx, c, file)
	must(t, err)
	nc, err := c.NATS.connect(ctx, RoleCommand)
	must(t, err)
	defer nc.Close()
	kv, err := queue.OpenBoard(ctx, nc)
	must(t, err)
	small := modelOptions{campaigns: scaledCampaigns - 1, rows: 100}
	ids, err := submitAll(ctx, kv, small, filepath.Clean(dir))
	must(t, err)
	must(t, awaitPublished(ctx, kv, ids, small))
	must(t, awaitComplete(ctx, c, large, scaledItems))
	return large
}

// scaled is a coordinator under measurement.
type scaled struct {
	base, large string
	events      atomic.Int64
	mu          sync.Mutex
	times       map[string][]time.Duration
}

// call sends a request and notes its time.
func (s *scaled) call(ctx context.Context, name, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	took := time.Since(begin)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s %.300s", path, a.Status, data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[name] = append(s.times[name], took)
	return data, err
}

// follow opens the event streams, and counts their events until the test ends.
func (s *scaled) follow(ctx context.Context, t *testing.T) {
	t.Helper()
	for range scaledStreams {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"events", nil)
		must(t, err)
		a, err := http.DefaultClient.Do(r)
		must(t, err)
		t.Cleanup(func() { a.Body.Close() })
		go func() {
			for lines := bufio.NewScanner(a.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "event: ") {
					s.events.Add(1)
				}
			}
		}()
	}
}

// measure sends the calls of the pages.
func (s *scaled) measure(ctx context.Context, t *testing.T) {
	t.Helper()
	of := "campaigns/" + s.large
	calls := [][2]string{
		{"campaigns", "campaigns"}, {"campaign", of}, {"items", of + "/items?limit=100"}, {"items by name", of + "/items?limit=100&sort=-name"},
		{"items by seconds", of + "/items?limit=100&sort=-seconds"}, {"items by metric", of + "/items?limit=100&sort=-psnr"},
		{"items of a state", of + "/items?limit=100&state=done"}, {"items of a name", of + "/items?limit=100&name=99"}, {"dead items", of + "/items?limit=500&state=dead"},
		{"throughput", of + "/throughput"}, {"workers", "workers"}, {"cluster", "cluster"}, {"me", "me"}, {"tasks", "tasks"},
	}
	clear(s.times)
	end := time.Now().Add(scaledTime)
	group, inner := errgroup.WithContext(ctx)
	for page := range scaledPages {
		group.Go(func() error {
			cursor := ""
			for i := page; time.Now().Before(end); i++ {
				c := calls[i%len(calls)]
				if c[0] == "items" && cursor != "" {
					c[1] += "&cursor=" + url.QueryEscape(cursor) // a person scrolls
				}
				data, err := s.call(inner, c[0], c[1])
				if err != nil {
					return err
				}
				if c[0] == "items" {
					cursor = between(string(data), `"next":"`, `"`)
				}
				sleep(inner, 100*time.Millisecond)
			}
			return nil
		})
	}
	must(t, group.Wait())
}

// between returns the text between two others, or nothing.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	found, _, _ := strings.Cut(rest, end)
	return found
}

// paint returns the times from the request of the large campaign's page to its first paint, and to its first items.
func (s *scaled) paint(t *testing.T) (first, items time.Duration) {
	t.Helper()
	b := openBrowser(t)
	b.base = strings.TrimSuffix(s.base, "api/v1/")
	b.step("open the browser", b.open("#/campaigns"), until(`document.querySelectorAll(".campaigns tbody tr").length > 1`))
	b.step("leave the page", chromedp.Navigate("about:blank"))
	b.step("open the large campaign", b.open("#/campaigns/"+s.large), until(`document.querySelectorAll(".row").length > 0`))
	read := func(expression string) time.Duration {
		return time.Duration(evaluate[float64](b, "read a time", expression) * float64(time.Millisecond))
	}
	items = read(`performance.now()`)
	return read(`performance.getEntriesByName("first-contentful-paint")[0].startTime`), items
}
