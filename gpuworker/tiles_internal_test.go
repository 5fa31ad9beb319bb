package gpuworker

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/job"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/restore/method"
)

// tiles divides the image of an item.
func tiles(side, overlap int) func(*item.Item) {
	return func(it *item.Item) { it.Tile, it.Overlap = side, overlap }
}

// TestItemInTiles: an item in tiles has a plan and a workload of its own, is solved alone, and reaches the same result from a checkpoint after any
// step. Tiles that do not suit prior or method are refused.
func TestItemInTiles(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	in := newAssigned(Assignment{Engine: e}, 1, nil, 0)
	whole, divided := planned(t, in, sampleItem(t, e, 64, 48)), planned(t, in, sampleItem(t, e, 64, 48, tiles(32, 8)))
	if divided.Plan.Tiles != (prior.Tiling{Side: 32, Overlap: 8}) || !divided.Plan.Divided() || whole.Plan.Divided() {
		t.Errorf("plans: %+v, %+v", divided.Plan, whole.Plan)
	}
	if divided.workload() == whole.workload() || in.loader.Fitting(divided.Plan, 8) != 1 || in.loader.Fitting(whole.Plan, 8) != 8 {
		t.Error("an item in tiles has the workload or the batch of one without")
	}
	if !slices.Equal(divided.Problem.Key[:], whole.Problem.Key[:]) {
		t.Error("tiles change the noise")
	}
	divided.Problem = solver.Problem{Y: make([]float32, divided.Op.MeasurementSize()), Key: noise.Key{1}}
	batch := job.Batch{Engine: e, Jobs: []*job.Job{&divided.Job}, Begin: func(c job.Course) {
		if c.Tiles != 6 {
			t.Errorf("%d tiles", c.Tiles)
		}
	}}
	must(t, batch.Solve(t.Context()))
	whole.Solution = divided.Solution
	stop, stops := errors.New("stop"), 0
	batch.Step = func(int) error { return stop }
	for err := batch.Solve(t.Context()); err != nil; err = batch.Solve(t.Context()) {
		if stops++; !errors.Is(err, stop) {
			t.Fatal(err)
		}
		data, err := encodeCheckpoint(divided.Reached, divided.Item.ID)
		must(t, err)
		c, err := decodeCheckpoint(data, divided.Item.ID)
		must(t, err)
		must(t, divided.Resume(e, c))
	}
	if !slices.Equal(divided.Solution.X, whole.Solution.X) || stops != 4 || divided.Reached != nil {
		t.Errorf("a result after %d checkpoints differs", stops)
	}
	for want, change := range map[string]func(*item.Item){
		"both multiples of 8": tiles(36, 8), "at most half of it": tiles(32, 24),
		"dps cannot restore images in tiles": func(it *item.Item) {
			tiles(32, 8)(it)
			s, err := method.Builtin().Resolve(method.Request{Method: "dps", Preset: "natural", Task: it.Task, Steps: 5}, 1000)
			if it.Method = s.Method; err == nil {
				it.Solver, err = json.Marshal(s)
			}
			must(t, err)
		},
	} {
		it := sampleItem(t, e, 64, 48, change)
		if err := in.loader.Plan(&job.Job{Item: it}); !errors.Is(err, job.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
