package coordinator_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/restore/prior"
)

// hintedRows is a dataset of n rows that state digest and size of their images, so that no image is read.
func hintedRows(n int) func(context.Context, manifest.Dataset, func(string)) iter.Seq2[manifest.Row, error] {
	return func(_ context.Context, d manifest.Dataset, _ func(string)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i := range n {
				row := manifest.Row{
					Index: i, Name: fmt.Sprintf("image%06d", i), Image: fmt.Sprintf("%s/image%06d.png", d.Path, i),
					ImageSHA256: fmt.Sprintf("%064x", i), Width: 32, Height: 32,
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// TestMemoryOfWaitingCampaigns measures the memory of a leader, with its queue server, for campaigns that wait for a
// worker. Half of them have a prior of their own file with equal bytes.
func TestMemoryOfWaitingCampaigns(t *testing.T) {
	const campaigns, limit = 4, 3 << 20
	tc := newTestCluster(t, 0)
	data, err := prior.Read(prior.Bundled)
	must(t, err)
	file := filepath.Join(t.TempDir(), "other.onnx")
	must(t, os.WriteFile(file, data, 0o644))
	tc.leadWith(func(c *coordinator.Config) { c.Rows = hintedRows(3000) })
	first := tc.submit("first", 2)
	tc.awaitPhase(first, manifest.PhasePreflight)
	before := heap()
	var ids []string
	for i := range campaigns {
		spec := tc.spec(fmt.Sprintf("waiting%d", i))
		if i%2 == 0 {
			spec.Prior = file
		}
		c, _, err := board.Submit(t.Context(), tc.board, spec, board.Order{Canary: 2}, time.Now())
		must(t, err)
		ids = append(ids, c.ID)
	}
	for _, id := range ids {
		tc.awaitPhase(id, manifest.PhasePreflight)
	}
	each := (int64(heap()) - int64(before)) / campaigns
	t.Logf("campaign_mib=%.2f", float64(each)/(1<<20))
	if each > limit {
		t.Errorf("a waiting campaign takes %d bytes, at most %d are allowed", each, limit)
	}
}
