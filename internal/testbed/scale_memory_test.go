package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// waitingRows is the number of items of a waiting campaign.
const waitingRows = 1000

// waiting measures the leader's memory per campaign that waits for workers, in MiB: the growth of its resident memory from
// the first to the last of o.campaigns campaigns, divided by their number. All use the bundled prior.
func waiting(ctx context.Context, o scaleOptions, dir string) (mib float64, err error) {
	dir = filepath.Join(dir, "waiting")
	c, err := start(ctx, o, dir)
	if err != nil {
		return 0, err
	}
	defer func() {
		c.Stop()
		if o.keep == "" {
			os.RemoveAll(dir) //nolint:errcheck // it lies in a temporary directory
		}
	}()
	// The workers answer the preflights. They are too slow for a tenth of the items.
	if _, err := c.AddWorker(ctx, "--simulate", "2s", "--simulate-workers", "8"); err != nil {
		return 0, err
	}
	leader := c.Coordinators[0].PID()
	var before int64
	for i := range o.campaigns + 1 {
		file, err := writeCampaign(dir, fmt.Sprintf("waiting-%d", i), waitingRows)
		if err != nil {
			return 0, err
		}
		id, err := submitCampaign(ctx, c, file)
		if err != nil {
			return 0, err
		}
		if i > 0 && i < o.campaigns {
			continue
		}
		if err := awaitComplete(ctx, c, id, waitingRows); err != nil {
			return 0, err
		}
		sleep(ctx, memoryPause)
		if i == 0 {
			before, err = residentMemory(leader)
		}
		if err != nil {
			return 0, err
		}
	}
	after, err := residentMemory(leader)
	return float64(after-before) / float64(o.campaigns) / (1 << 20), err
}

// memoryPause is the time before a measurement in which the process may return memory.
const memoryPause = 5 * time.Second
