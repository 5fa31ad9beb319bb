package main_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/restore/item"
)

// TestRunOnSeveralDevices: each device has a worker, and the results are those of one device.
func TestRunOnSeveralDevices(t *testing.T) {
	t.Parallel()
	dir, temp := photographs(t, "chelsea", "coffee", "rocket"), t.TempDir()
	outs := map[string]string{"cpu": filepath.Join(temp, "one"), "cpu,cpu": filepath.Join(temp, "two")}
	for device, out := range outs {
		e := restore(t, "--images", dir, "--task", "denoise,super_resolution", "--runs", "2", "--steps", "3", "--batch", "1", "--device", device, "--quiet", "--out", out)
		wantCode(t, e, 0)
		wantCounts(t, e, 12, 0, 0, out)
	}
	wantSame(t, outs["cpu,cpu"], outs["cpu"])
	for id := range wantItems(t, outs["cpu"], 12) {
		if d := levels(t, read(t, file(outs["cpu,cpu"], id, item.FileRestored)), read(t, file(outs["cpu"], id, item.FileRestored))); d != 0 {
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

// TestRestoreOnSeveralDevices: each device restores a part of the pictures, which are those of one device.
func TestRestoreOnSeveralDevices(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, temp := corners(t, "chelsea", "coffee", "rocket"), t.TempDir()
	for device, out := range map[string]string{"cpu": "one", "cpu,cpu,cpu,cpu": "four"} {
		e := ddiff(t, "restore", dir, "--task", "denoise", "--sigma", "0.1", "--steps", "2", "--threads", "1", "--quiet", "--device", device, "--out", filepath.Join(temp, out))
		wantCode(t, e, 0)
	}
	files, err := filepath.Glob(filepath.Join(temp, "one", "*.png"))
	must(t, err)
	if len(files) != 3 {
		t.Fatalf("pictures %v", files)
	}
	for _, one := range files {
		if d := levels(t, read(t, filepath.Join(temp, "four", filepath.Base(one))), read(t, one)); d != 0 {
			t.Errorf("%s differs by %d grey levels", filepath.Base(one), d)
		}
	}
}

// TestRestoreResultsWithPrecision: the precision asks the device, which the campaign then opens again.
func TestRestoreResultsWithPrecision(t *testing.T) {
	t.Parallel()
	dir, temp := corners(t, "coffee"), t.TempDir()
	e := ddiff(t, "restore", dir, "--task", "denoise", "--steps", "2", "--threads", "1", "--quiet", "--device", "cpu", "--precision", "float32",
		"--unchecked", "--results", filepath.Join(temp, "results"), "--out", temp)
	wantCode(t, e, 0)
}
