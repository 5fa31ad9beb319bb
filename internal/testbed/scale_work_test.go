package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
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
func work(ctx context.Context, o scaleOptions, dir string) worked {
	dir = filepath.Join(dir, "workers")
	c := try(start(ctx, o, dir))
	defer o.discard(c, dir)
	rows := 2*int(float64(o.workers)*o.during.Seconds()/o.item.Seconds()) + o.workers
	file := try(writeCampaign(dir, "workers", rows))
	p := try(c.AddWorker(ctx, "--simulate", o.item.String(), "--simulate-workers", fmt.Sprint(o.workers)))
	id := try(submitCampaign(ctx, c, file))
	check(awaitComplete(ctx, c, id, rows))
	sleep(ctx, o.during)
	check(ctx.Err())
	st := try(c.Status(ctx, id))
	if st.Counts.Pending == 0 || st.Counts.Failed+st.Counts.Dead > 0 {
		check(fmt.Errorf("the workers ran out of work or lost items: %+v", st.Counts))
	}
	if code := try(p.Stop(drainWithin)); code != 0 {
		check(fmt.Errorf("the workers ended with code %d", code))
	}
	return try(readReport(p.Log()))
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
