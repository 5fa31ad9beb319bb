package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ddiff/api"
	"ddiff/internal/regular"
	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// writeLatentPrior writes a latent prior of one level around the network of writePrior.
func writeLatentPrior(t *testing.T, dir string) {
	t.Helper()
	pixels := filepath.Join(t.TempDir(), "pixels.onnx")
	writePrior(t, pixels, 3, card(3))
	must(t, haar.Write(dir, read(t, pixels), haar.Config{Levels: 1, Step: 0.05}))
}

// latentCampaign writes a campaign of both modes of latent_ddiff with the bundle in dir.
func latentCampaign(t *testing.T, dir string, steps int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "latent.yaml")
	write(t, file, fmt.Appendf(nil, `name: latent
dataset: {path: %s, size: 32}
prior: %s
preset: ffhq
methods: [latent_ddiff]
steps: %d
tasks: [super_resolution, hdr]
solver: {mode: [pixel_dc, latent_dc]}
`, photographs(t, "coffee"), dir, steps))
	return file
}

// firstStep finds the first step in the spans of a process.
var firstStep = regexp.MustCompile(`"Key":"ddiff\.step\.first","Value":\{"Type":"INT64","Value":(\d+)`)

// restored returns the pixels of all items of an output by their ids, and the workers of the items.
func restored(t *testing.T, output string) (pixels map[string][]byte, workers map[string]bool) {
	t.Helper()
	pixels, workers = map[string][]byte{}, map[string]bool{}
	found, err := filepath.Glob(filepath.Join(output, "items", "*", "result.json"))
	must(t, err)
	for _, file := range found {
		var r item.Result
		must(t, json.Unmarshal(read(t, file), &r))
		img, err := raster.Decode(read(t, filepath.Join(filepath.Dir(file), "restored.png")))
		must(t, err)
		rgb, err := raster.RGB8(img)
		must(t, err)
		pixels[r.Item.ID], workers[r.Worker] = rgb, true
	}
	return pixels, workers
}

// TestLatentCampaign runs a campaign with a bundle on a cluster. The first worker stops between two steps and another
// worker, which has only the store, resumes its items after the bundle is gone. The pixels are those of one run.
func TestLatentCampaign(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bundle")
	writeLatentPrior(t, dir)
	file := latentCampaign(t, dir, 1000)
	alone := filepath.Join(t.TempDir(), "alone")
	wantCode(t, ddiff(t, "run", file, "--threads", "1", "--device", "cpu", "--quiet", "--out", alone), 0)
	want, _ := restored(t, alone)
	if len(want) != 4 {
		t.Fatalf("%d items, want 4", len(want))
	}

	store := t.TempDir()
	n := startNATS(t, "")
	c, at := n.coordinator(t, store)
	e := ddiff(t, "submit", file, "--server", at, "--canary", "0")
	wantCode(t, e, 0)
	id := strings.TrimSpace(e.stdout)

	first := beginWorker(t, "--nats", n.url, "--name", "first", "--batch", "1")
	first.wait(t, &first.stdout, steps, 1)
	must(t, os.RemoveAll(dir)) // the store has a copy
	first.signal(t, syscall.SIGTERM)
	e = first.end()
	wantCode(t, e, 0)
	wantMessage(t, e, "stored a checkpoint")
	saved := checkpointSteps(t, e.stderr)
	if len(saved) == 0 {
		t.Fatal("no checkpoint")
	}

	second := beginWorker(t, "--nats", n.url, "--name", "second")
	e = ddiff(t, "status", "--watch", id, "--server", at)
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "done=4 failed=0 dead=0") {
		t.Errorf("the campaign ended with %q", e.stdout)
	}
	second.signal(t, syscall.SIGTERM)
	wantCode(t, second.end(), 0)
	c.signal(t, syscall.SIGTERM)
	wantCode(t, c.end(), 0)
	begun := firstStep.FindAllStringSubmatch(second.stdout.text(), -1)
	starts := map[string]int{}
	for _, match := range begun {
		starts[match[1]]++
	}
	for _, step := range saved {
		if starts[strconv.Itoa(step+1)] == 0 {
			t.Errorf("no step begins after the checkpoint of step %d", step)
		}
	}
	if starts["1"] != 4-len(saved) {
		t.Errorf("%d items start over, want %d of 4", starts["1"], 4-len(saved))
	}
	got, _ := restored(t, filepath.Join(store, id))
	for item, pixels := range want {
		if !bytes.Equal(got[item], pixels) {
			t.Errorf("item %s: the pixels differ from those of one run", item)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d results, want %d", len(got), len(want))
	}
}

// TestExchangedPart exchanges a part of a bundle between the submission and its reading by the coordinator.
func TestExchangedPart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bundle")
	writeLatentPrior(t, dir)
	store := t.TempDir()
	n := startNATS(t, "")
	spec, err := manifest.Load(latentCampaign(t, dir, 10))
	must(t, err)
	data, err := prior.Read(spec.Prior)
	must(t, err)
	copyFile(t, filepath.Join(dir, "encoder.onnx"), filepath.Join(dir, "decoder.onnx"))
	c, at := n.coordinator(t, store)
	done, err := client(t, at).SubmitSpec(t.Context(), spec, api.Order{PriorSHA256: regular.SHA256(data)})
	must(t, err)
	id := done.ID
	e := ddiff(t, "status", "--watch", id, "--server", at)
	wantCode(t, e, 3)
	wantMessage(t, e, "decoder.onnx was altered", "export the bundle again")
	c.signal(t, syscall.SIGTERM)
	wantCode(t, c.end(), 0)
}
