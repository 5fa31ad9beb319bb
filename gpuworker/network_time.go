package gpuworker

import (
	"context"
	"sync"
	"time"

	"ddiff/gpuworker/tuner"
	"ddiff/restore"
	"ddiff/restore/prior"
)

// networkTimer knows how long a forward pass of the score network takes alone. The solver's calls of the runtime contain the
// network, so that its share of their time can only be estimated.
type networkTimer struct {
	mu      sync.Mutex
	seconds map[networkKey]float64 // of one pass
}

// networkKey identifies a measurement.
type networkKey struct {
	workload tuner.Workload
	batch    int
}

// time returns the seconds of one forward pass for a batch of n. The first call for a workload and n measures them: it compiles
// the network again, which needs the memory of a second copy.
func (t *networkTimer) time(ctx context.Context, e *restore.Engine, p restore.Plan, w tuner.Workload, n int) (float64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := networkKey{w, n}
	if s, known := t.seconds[key]; known {
		return s, nil
	}
	rt, build := e.RuntimeFor(p), e.Build(p)
	network, err := e.Prior().CompileStreams(rt, e.Prior().Streams(rt, n, build.Streams, p.Image.Height, p.Image.Width), p.Image.Height, p.Image.Width, build.Precision)
	if err != nil {
		return 0, err
	}
	defer network.Close()
	ms, err := prior.Milliseconds(2, 20*time.Millisecond, func() error { return network.Run(ctx) })
	if err != nil {
		return 0, err
	}
	if t.seconds == nil {
		t.seconds = map[networkKey]float64{}
	}
	t.seconds[key] = ms / 1000
	return t.seconds[key], nil
}
