package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
)

// The dataset that changes: its items fill one window and a part of the second. An image of the first window is deleted.
const (
	changedImages = 620
	changedHold   = 560
	changedGone   = "img-0100.png"
	changedLimit  = 2 * time.Minute
)

// allTasks has 4096 items in 512 images.
var allTasks = []string{
	"super_resolution", "inpaint_box", "inpaint_random", "gaussian_deblur", "motion_deblur", "nonlinear_deblur", "phase_retrieval", "hdr",
}

// runChanged kills the leader after the first window of a dataset in S3, and deletes an image of this window. The next
// leader lists the dataset again. No row is lost or doubled.
func runChanged(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (f figures, err error) {
	defer caught(&err)
	ctx, cancel := context.WithTimeout(ctx, changedLimit)
	defer cancel()
	c, err := Start(ctx, Options{Dir: dir, Program: o.program, Lease: lease, Election: term, Stall: stall})
	defer c.Stop()
	check(err)
	network := try(newNetwork(ctx, c.S3.Address))
	defer network.close()
	files := map[string][]byte{}
	for i := range changedImages {
		files[fmt.Sprintf("changed/img-%04d.png", i)] = try(pixel(i))
	}
	check(c.PutImages(ctx, files))
	c.Through(network.address)
	for range 2 {
		try(c.AddCoordinator(ctx))
	}
	// The worker answers the preflight and holds its first item to the end.
	try(c.AddWorker(ctx, "--simulate", "24h"))
	reached, release := network.hold(Dataset, "changed/", changedHold)
	defer release()
	p := plan{name: "changed", images: files, tasks: allTasks, size: 256, steps: 20, prior: "bundled"}
	file := filepath.Join(dir, p.name+".yaml")
	base, query, _ := strings.Cut(c.Images(), "?")
	check(p.write(file, base+"/changed/?"+query))
	id := try(submitCampaign(ctx, c, file))
	select {
	case <-reached:
	case <-ctx.Done():
		return f, fmt.Errorf("campaign %s: the coordinator did not read %d images: %w", id, changedHold, ctx.Err())
	}
	rec := try(awaitStatus(ctx, c, id, func(s record.Status) bool { return s.Windows >= 1 }))
	leader := try(c.Leader(ctx))
	leader.Kill()
	check(os.Remove(filepath.Join(c.S3.Root, Dataset, "changed", changedGone)))
	release()
	say("killed %s after %d items of %d images and deleted %s", leader.Name, rec.Counts.Items, changedImages, changedGone)
	rec = try(awaitStatus(ctx, c, id, func(s record.Status) bool { return s.Complete && s.Windows > 0 || s.Phase.Ended() }))
	say("%s: items=%d windows=%d phase=%s reason=%q", id, rec.Counts.Items, rec.Windows, rec.Phase, rec.Reason)
	// The items are published, not solved: only losses count.
	f.lost, f.duplicates, err = countRows(filepath.Join(c.path("s3"), "buckets", Bucket, filepath.FromSlash(shard.Prefix(id))), p)
	if f.lost+f.duplicates > 0 {
		err = errors.Join(err, fmt.Errorf("campaign %s: %d items lost, %d duplicates in the windows", id, f.lost, f.duplicates))
	}
	return f, err
}

// pixel returns a small image that differs for each i.
func pixel(i int) ([]byte, error) {
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for at := range 64 {
		img.Set(at%8, at/8, color.NRGBA{byte(i), byte(i >> 8), byte(at), 255})
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

// awaitStatus polls the status of a campaign until a condition holds.
func awaitStatus(ctx context.Context, c *Cluster, id string, holds func(record.Status) bool) (s record.Status, err error) {
	for {
		if s, err = c.Status(ctx, id); err == nil && holds(s) {
			return s, nil
		}
		if sleep(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return s, fmt.Errorf("wait for campaign %s: %w; the last status is %+v", id, errors.Join(ctx.Err(), err), s)
		}
	}
}

// countRows counts the items of a plan that are missing from stored windows, and those that are there more than once.
func countRows(dir string, p plan) (lost, duplicates int, err error) {
	found := map[string]int{}
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		w, err := shard.Decode(data)
		if err != nil {
			return err
		}
		for _, it := range w.Items {
			address, _, _ := strings.Cut(it.Image.Path, "?")
			found[filepath.Base(address)+" "+it.Task]++
		}
		return nil
	})
	for name := range p.images {
		for _, task := range p.tasks {
			switch n := found[filepath.Base(name)+" "+task]; {
			case n == 0:
				lost++
			case n > 1:
				duplicates += n - 1
			}
		}
	}
	return lost, duplicates, err
}

// TestChaosChanged changes a dataset between two leaders.
func TestChaosChanged(t *testing.T) {
	t.Parallel()
	runBeside(t, runChanged)
}
