package gpuworker_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"ddiff/internal/queue"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// work restores items with a new worker and returns their results.
func work(t *testing.T, s store, name string, all ...item.Item) map[string]item.Result {
	t.Helper()
	q := newQueue(t, queue.Config{})
	publish(t, q, all...)
	cfg := config(t, q, s)
	cfg.Name = name
	w := start(t, cfg)
	got := results(t, q, len(all))
	w.stop(t)
	return got
}

func TestPassportOfStoredImage(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	it := items(t, 1)[0]
	it.Campaign, it.Index = "summer", 7 // not part of the identity
	work(t, s, "tester", it)
	r := wantStored(t, s, it.ID)
	p, err := passport.Read(get(t, s, it.ID, item.FileRestored))
	must(t, err)

	want := it
	want.Campaign, want.Index = "", 0
	if !reflect.DeepEqual(p.Item, want) {
		t.Errorf("the passport's item is %+v, want %+v", p.Item, want)
	}
	if got := regular.SHA256(samples(t, s, it.ID)); p.Pixels != got {
		t.Errorf("the pixels have the digest %s, the passport says %s", got, p.Pixels)
	}
	if got := regular.SHA256(get(t, s, it.ID, item.FileData)); len(p.Data) != 1 || p.Data[item.FileData] != got {
		t.Errorf("the data are %v, want %s for %s", p.Data, got, item.FileData)
	}
	if !reflect.DeepEqual(p.Metrics, r.Metrics) || !reflect.DeepEqual(p.MetricIDs, r.MetricIDs) || !p.Runtime.Equal(r.Runtime) ||
		p.Batch != 1 || p.Worker != "tester" || p.Attempt != 1 || p.TraceID != r.TraceID {
		t.Errorf("the passport is %+v, the result %+v", p, r)
	}
	text, _, err := raster.PNGText(get(t, s, it.ID, item.FileRestored), "ddiff")
	must(t, err)
	for _, absent := range []string{"campaign", "summer", "index", "finished", "seconds"} {
		if strings.Contains(text, absent) {
			t.Errorf("the passport mentions %q:\n%s", absent, text)
		}
	}
}

// Two attempts of one worker write equal files; the file of another worker differs in the worker's name only.
func TestPassportIsDeterministic(t *testing.T) {
	t.Parallel()
	it := items(t, 1)[0]
	var files [3][]byte
	for i, name := range []string{"one", "one", "two"} {
		s := newStore(t)
		work(t, s, name, it)
		files[i] = get(t, s, it.ID, item.FileRestored)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("equal results have different files")
	}
	if bytes.Equal(files[0], files[2]) {
		t.Error("the name of the worker is not in the file")
	}
	one, err := passport.Read(files[0])
	must(t, err)
	two, err := passport.Read(files[2])
	must(t, err)
	if one.Worker = "two"; !reflect.DeepEqual(one, two) {
		t.Errorf("the passports are %+v and %+v", one, two)
	}
}

// Recompute equals a worker, from the item's files and from stored arrays.
func TestRecompute(t *testing.T) {
	t.Parallel()
	it, s := items(t, 1)[0], newStore(t)
	work(t, s, "tester", it)
	r, e := wantStored(t, s, it.ID), engine(t)

	check := func(t *testing.T, got *job.Recomputed) {
		t.Helper()
		rgb, err := raster.RGB8(got.Image)
		must(t, err)
		if !bytes.Equal(rgb, samples(t, s, it.ID)) || got.Metrics["residual"] != r.Metrics["residual"] {
			t.Error("the image differs from the worker's")
		}
		for name, sum := range got.Artifacts {
			if r.Artifacts[name] != sum {
				t.Errorf("%s has the digest %s, want %s", name, sum, r.Artifacts[name])
			}
		}
	}
	got, err := job.Recompute(t.Context(), e, manifest.Files{}, it, nil)
	must(t, err)
	check(t, got)
	if !reflect.DeepEqual(got.Metrics, r.Metrics) || len(got.Artifacts) != len(r.Artifacts)-1 {
		t.Errorf("metrics %+v and %d artifacts, want %+v and %d", got.Metrics, len(got.Artifacts), r.Metrics, len(r.Artifacts)-1)
	}

	gone := it
	gone.Image = &item.Source{Path: "nowhere.png", SHA256: it.Image.SHA256}
	if _, err := job.Recompute(t.Context(), e, manifest.Files{}, gone, nil); err == nil || !strings.Contains(err.Error(), "nowhere.png") {
		t.Errorf("a missing image: error %v", err)
	}
	got, err = job.Recompute(t.Context(), e, manifest.Files{}, gone, &job.Stored{Measurement: get(t, s, it.ID, item.FileData)})
	must(t, err)
	check(t, got)
	if got.Metrics.Has("psnr") {
		t.Error("PSNR without a ground truth")
	}

	for name, change := range map[string]func(*item.Item){
		"no input":      func(it *item.Item) { it.Image = nil },
		"other prior":   func(it *item.Item) { it.Prior = strings.Repeat("ab", 32) },
		"unknown task":  func(it *item.Item) { it.Task = "magic" },
		"bad settings":  func(it *item.Item) { it.Solver = json.RawMessage(`{"steps":0}`) },
		"no settings":   func(it *item.Item) { it.Solver = json.RawMessage(`[]`) },
		"other size":    func(it *item.Item) { it.Width, it.Height = 64, 32 },
		"negative size": func(it *item.Item) { it.Width, it.Height = -32, -32 },
	} {
		bad := it
		change(&bad)
		if _, err := job.Recompute(t.Context(), e, manifest.Files{}, bad, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, stored := range map[string]job.Stored{
		"nothing":     {},
		"other shape": {Measurement: other(t)},
	} {
		if _, err := job.Recompute(t.Context(), e, manifest.Files{}, it, &stored); err == nil || !strings.Contains(err.Error(), item.FileData) {
			t.Errorf("stored %s: error %v", name, err)
		}
	}
}

// other returns an array with another shape than the measurements of the tests.
func other(t *testing.T) []byte {
	t.Helper()
	data, err := raster.EncodeNPY([]int{3, 4, 4}, make([]float32, 48))
	must(t, err)
	return data
}
