package coordinator_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// sameBytes makes the workers fail an item whose image is cut, or has other bytes than the item says, as real ones do.
func (tc *testCluster) sameBytes() {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	tc.outcome = func(it item.Item, _ int) error {
		data, err := os.ReadFile(it.Image.Path)
		if _, cut := raster.Decode(data); err == nil && (cut != nil || regular.SHA256(data) != it.Image.SHA256) {
			err = errDead
		}
		return err
	}
}

// old sets the modification times of the dataset back.
func (tc *testCluster) old() {
	files, err := filepath.Glob(filepath.Join(tc.dir, "*"))
	must(tc.t, err)
	for _, f := range files {
		must(tc.t, os.Chtimes(f, time.Time{}, time.Now().Add(-time.Hour)))
	}
}

// half writes the first half of an image and returns its bytes.
func (tc *testCluster) half(name string, seed int) (whole []byte) {
	tc.t.Helper()
	other := tc.t.TempDir()
	must(tc.t, writeImage(other, name, seed))
	whole, err := os.ReadFile(filepath.Join(other, name+".png"))
	must(tc.t, err)
	must(tc.t, tc.write(name+".png", whole[:len(whole)/2]))
	return whole
}

// TestAttackHalfFile: a file that is taken while it is written is restored once it is complete and rows are appended, whether its items were
// published or not. A file that is overwritten after its items were done is named, and they stay.
func TestAttackHalfFile(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.sameBytes()
	tc.lead()
	whole := tc.half("zhalf", 50)
	id := tc.submit("half", 1)
	tc.work(id)
	tc.await(id, "finished with two images and the failed items of one", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts.Done == 4 && s.Status.Counts.Dead+s.Status.Counts.Failed == 2
	})
	if n := tc.append(id, "", ""); n != 0 {
		t.Errorf("%d items while the file is the same", n)
	}
	must(t, tc.write("zhalf.png", whole))
	if n := tc.append(id, "", ""); n != 2 {
		t.Errorf("%d items of the complete file, want 2", n)
	}
	tc.awaitImages(id, 3)
	tc.wantImages(id, 3)
	tc.image("zhalf", 51)
	for range 2 {
		a, err := tc.command(id, command{Verb: board.VerbAppend})
		must(t, err)
		if a.Items != 0 || a.Overwritten != 1 || a.Example != filepath.Join(tc.dir, "zhalf.png") {
			t.Errorf("an overwritten file: %+v", a)
		}
	}
	tc.awaitImages(id, 3)
}

// TestAttackGrowingFile: of files that grow between two looks, no digest is taken. Older files need no second look.
func TestAttackGrowingFile(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.old()
	tc.sameBytes()
	tc.leadWith(func(c *coordinator.Config) { c.Settle = time.Second })
	whole := tc.half("grows", 60)
	stop := tc.background(func(ctx context.Context) error {
		for n := len(whole) / 2; ctx.Err() == nil && n < len(whole)-1; n++ {
			if err := tc.write("grows.png", whole[:n]); err != nil {
				return err
			}
			pause(ctx, 100*time.Millisecond)
		}
		return nil
	})
	id := tc.submit("grows", 1)
	tc.work(id)
	tc.await(id, "finished with the row of the file failed", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts.Done == 2 && s.Status.Counts.Failed == 2 && strings.Contains(s.Status.Warning, "still changes")
	})
	stop()
	must(t, tc.write("grows.png", whole))
	if n := tc.append(id, "", ""); n != 2 {
		t.Errorf("%d items of the complete file, want 2", n)
	}
	tc.awaitImages(id, 2)
}
