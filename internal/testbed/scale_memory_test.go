package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// waitingRows is the number of items of a waiting campaign.
const waitingRows = 1000

// waiting measures the leader's memory per campaign that waits for workers, in MiB: the growth of its resident memory from
// the first to the last of o.campaigns campaigns, divided by their number. All use the bundled prior.
func waiting(ctx context.Context, o scaleOptions, dir string) (mib float64) {
	dir = filepath.Join(dir, "waiting")
	c := try(start(ctx, o, dir))
	defer o.discard(c, dir)
	// The workers answer the preflights. They are too slow for a tenth of the items.
	try(c.AddWorker(ctx, "--simulate", "2s", "--simulate-workers", "8"))
	leader := c.Coordinators[0].PID()
	var before int64
	for i := range o.campaigns + 1 {
		file := try(writeCampaign(dir, fmt.Sprintf("waiting-%d", i), waitingRows))
		id := try(submitCampaign(ctx, c, file))
		if i > 0 && i < o.campaigns {
			continue
		}
		check(awaitComplete(ctx, c, id, waitingRows))
		sleep(ctx, memoryPause)
		if i == 0 {
			before = try(residentMemory(leader))
		}
	}
	return float64(try(residentMemory(leader))-before) / float64(o.campaigns) / (1 << 20)
}

// memoryPause is the time before a measurement in which the process may return memory.
const memoryPause = 5 * time.Second
