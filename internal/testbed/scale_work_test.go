package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// worked holds the measurements of simulated workers.
type worked struct {
	workers, items int
	busy           float64
	p50, p99       float64 // ms
}

func (w worked) String() string {
	return fmt.Sprintf("%d workers: %d items, busy %.3f, dispatch latency p50 %.1f ms, p99 %.1f ms", w.workers, w.items, w.busy, w.p50, w.p99)
}

// work runs simulated workers on a campaign with more items than they can finish.
func work(ctx context.Context, o scaleOptions, dir string) (worked, error) {
	dir = filepath.Join(dir, "workers")
	c, err := start(ctx, o, dir)
	if err != nil {
		return worked{}, err
	}
	defer func() {
		c.Stop()
		if o.keep == "" {
			os.RemoveAll(dir) //nolint:errcheck // it lies in a temporary directory
		}
	}()
	rows := 2*int(float64(o.workers)*o.during.Seconds()/o.item.Seconds()) + o.workers
	file, err := writeCampaign(dir, "workers", rows)
	if err != nil {
		return worked{}, err
	}
	p, err := c.AddWorker(ctx, "--simulate", o.item.String(), "--simulate-workers", fmt.Sprint(o.workers))
	if err != nil {
		return worked{}, err
	}
	id, err := submitCampaign(ctx, c, file)
	if err != nil {
		return worked{}, err
	}
	if err := awaitComplete(ctx, c, id, rows); err != nil {
		return worked{}, err
	}
	end := time.NewTimer(o.during)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
		return worked{}, ctx.Err()
	}
	st, err := c.Status(ctx, id)
	if err != nil {
		return worked{}, err
	}
	if st.Counts.Pending == 0 || st.Counts.Failed+st.Counts.Dead > 0 {
		return worked{}, fmt.Errorf("the workers ran out of work or lost items: %+v", st.Counts)
	}
	if code, err := p.Stop(drainWithin); err != nil {
		return worked{}, err
	} else if code != 0 {
		return worked{}, fmt.Errorf("the workers ended with code %d", code)
	}
	return readReport(p.Log())
}

var reportLine = regexp.MustCompile(`(?m)^workers=(\d+) items=(\d+) busy=([\d.]+) p50_ms=([\d.]+) p99_ms=([\d.]+)$`)

// readReport parses the line that workers print at their end.
func readReport(log string) (w worked, err error) {
	m := reportLine.FindStringSubmatch(log)
	if m == nil {
		return w, fmt.Errorf("the workers printed no report: %s", log[max(0, len(log)-1000):])
	}
	_, err = fmt.Sscan(m[1]+" "+m[2]+" "+m[3]+" "+m[4]+" "+m[5], &w.workers, &w.items, &w.busy, &w.p50, &w.p99)
	return w, err
}
