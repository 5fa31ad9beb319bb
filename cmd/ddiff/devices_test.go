package main_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/manifest"
)

// TestRunOnSeveralDevices: each device has a worker, and the results are those of one device.
func TestRunOnSeveralDevices(t *testing.T) {
	t.Parallel()
	dir, temp := photographs(t, "chelsea", "coffee", "rocket"), t.TempDir()
	outs := map[string]string{"cpu": filepath.Join(temp, "one"), "cpu,cpu": filepath.Join(temp, "two")}
	for device, out := range outs {
		e := restore(t, "--images", dir, "--task", "denoise,super_resolution", "--runs", "2", "--steps", "10", "--batch", "1", "--device", device, "--quiet", "--out", out)
		wantCode(t, e, 0)
		wantCounts(t, e, 12, 0, 0, out)
	}
	wantSame(t, outs["cpu,cpu"], outs["cpu"])
	for id := range wantItems(t, outs["cpu"], 12) {
		if d := levels(t, read(t, file(outs["cpu,cpu"], id, manifest.FileRestored)), read(t, file(outs["cpu"], id, manifest.FileRestored))); d != 0 {
			t.Errorf("item %s differs by %d grey levels", id, d)
		}
	}
	for device, want := range map[string][]string{"cpu": {"embedded"}, "cpu,cpu": {"embedded", "embedded 2"}} {
		workers := map[string]bool{}
		for _, r := range wantItems(t, outs[device], 12) {
			workers[r.Worker] = true
		}
		if got := slices.Sorted(maps.Keys(workers)); !slices.Equal(got, want) {
			t.Errorf("%s: workers %v, want %v", device, got, want)
		}
	}
}

// Devices of several providers are refused, and several devices by a command that uses one.
func TestRefusedDevices(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee")
	for device, want := range map[string]string{
		"cpu,cuda:0": "several devices need one provider", "auto,auto": "several devices need one provider", "cpu,": "is none of auto",
		"cpu,cpu:1": "is none of auto", "webgpu:1": "webgpu has only device 0",
	} {
		e := restore(t, "--images", dir, "--task", "denoise", "--device", device, "--out", filepath.Join(t.TempDir(), "out"))
		wantCode(t, e, 2)
		wantMessage(t, e, want)
	}
	e := ddiff(t, "bench", "--images", dir, "--device", "cpu,cpu")
	wantCode(t, e, 2)
	wantMessage(t, e, "--device cpu,cpu: this command uses one device")
}
