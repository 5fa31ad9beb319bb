package score_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/report/result"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/raster"
	"ddiff/internal/score"
	"ddiff/restore/item"
	"ddiff/storage"
)

// output is a directory with results of flat pictures: item i has the truth 100 and a restored image of 100+i.
type output struct {
	score.Store
	t *testing.T

	mu   sync.Mutex
	gets map[string]int // by file
	fail error          // of Put
}

func newOutput(t *testing.T, items int) *output {
	t.Helper()
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	o := &output{Store: dir, t: t, gets: make(map[string]int)}
	for i := range items {
		o.add(i, uint8(100+i%50), true)
	}
	return o
}

func (o *output) Get(ctx context.Context, key string) ([]byte, error) {
	o.mu.Lock()
	o.gets[key[strings.LastIndexByte(key, '/')+1:]]++
	o.mu.Unlock()
	return o.Store.Get(ctx, key)
}

func (o *output) Put(ctx context.Context, key string, data []byte) error {
	if o.fail != nil && strings.HasPrefix(key, result.ScoresFolder) {
		return o.fail
	}
	return o.Store.Put(ctx, key, data)
}

// add stores the result of item i.
func (o *output) add(i int, level uint8, truth bool) (id string) {
	o.t.Helper()
	r := item.Result{
		Schema: item.SchemaVersion, Outcome: item.OutcomeDone, Artifacts: map[string]string{},
		Item: item.Item{
			Name: fmt.Sprint("image", i), Task: "hdr", Method: "ddiff", Width: 16, Height: 16, Fit: item.FitCenterCrop,
			Image: &item.Source{Path: "x", SHA256: fmt.Sprintf("%064x", i)}, Solver: json.RawMessage(`{}`),
		},
	}
	must(o.t, r.Item.Identify())
	r.Metrics = item.Metrics{"psnr": 40}
	pictures := map[string]uint8{item.FileRestored: level}
	if truth {
		pictures[item.FileTruth] = 100
	}
	for file, level := range pictures {
		img := image.NewGray(image.Rect(0, 0, 16, 16))
		for at := range img.Pix {
			img.Set(at%16, at/16, color.Gray{Y: level})
		}
		var data bytes.Buffer
		must(o.t, png.Encode(&data, img))
		r.Artifacts[file] = regular.SHA256(data.Bytes())
		o.put(item.Key(r.Item.ID, file), data.Bytes())
	}
	data, err := json.Marshal(r)
	must(o.t, err)
	o.put(item.Key(r.Item.ID, item.FileResult), data)
	return r.Item.ID
}

func (o *output) put(key string, data []byte) {
	o.t.Helper()
	must(o.t, o.Store.Put(o.t.Context(), key, data))
}

// run scores PSNR and HaarPSI, and returns the counts without the fields that all calls share.
func (o *output) run(ctx context.Context, change ...func(*score.Config)) ([]score.Count, error) {
	cfg := score.Config{Address: "out", Store: o, Parallel: 4}
	for _, name := range []string{"psnr", "haarpsi"} {
		m, ok := score.Named(name, "test")
		if !ok {
			o.t.Fatalf("no metric %s", name)
		}
		cfg.Metrics = append(cfg.Metrics, m)
	}
	for _, c := range change {
		c(&cfg)
	}
	return score.Run(ctx, cfg)
}

func (o *output) want(counts []score.Count, err error, want score.Count) {
	o.t.Helper()
	must(o.t, err)
	for _, c := range counts {
		c.Metric, c.Difference = "", nil
		if c != want {
			o.t.Errorf("counts %+v, want %+v", c, want)
		}
	}
}

// figures are the values of psnr@1:png by level of the restored picture.
func (o *output) figures() map[string]float64 {
	o.t.Helper()
	out := make(map[string]float64)
	for r, err := range result.Results(o.t.Context(), []result.Output{{Address: "out", Store: o.Store}}) {
		must(o.t, err)
		for _, s := range r.Scores {
			if s.Metric == "psnr@1:png" && s.Value != nil {
				out[r.Item.Name] = *s.Value
			}
		}
	}
	return out
}

// TestOnlyMissingScores: a second run computes nothing, a new item only itself, and a changed item again.
func TestOnlyMissingScores(t *testing.T) {
	t.Parallel()
	o := newOutput(t, 5)
	counts, err := o.run(t.Context())
	o.want(counts, err, score.Count{Items: 5, Scored: 5})
	if d := counts[0].Difference; d == nil || !(*d >= 15) { // identical pictures have 80 dB, result.json says 40
		t.Errorf("difference %v", d)
	}
	if got := o.figures(); len(got) != 5 || !(got["image0"] >= 79.9) || !(got["image4"] <= 37) || !(got["image4"] >= 36) { // 20 log10(255/4)
		t.Errorf("figures %v", got)
	}
	clear(o.gets)
	counts, err = o.run(t.Context())
	o.want(counts, err, score.Count{Items: 5, Present: 5})
	if o.gets[item.FileTruth]+o.gets[item.FileRestored] > 0 {
		t.Errorf("the second run read pictures: %v", o.gets)
	}
	o.add(7, 130, true)
	o.add(8, 130, false) // no truth
	counts, err = o.run(t.Context())
	o.want(counts, err, score.Count{Items: 7, Scored: 1, Present: 5, Skipped: 1})

	before := o.figures()["image4"]
	o.add(4, 140, true) // restored anew: the same identity, other pixels
	if got, stale := o.figures()["image4"]; stale {
		t.Errorf("the score %v of the replaced picture counts", got)
	}
	counts, err = o.run(t.Context())
	o.want(counts, err, score.Count{Items: 7, Scored: 1, Present: 5, Skipped: 1})
	if got := o.figures()["image4"]; !(got < before) {
		t.Errorf("score %v of the new picture, %v of the old", got, before)
	}
}

// TestInterruptedAndConcurrent: an interruption keeps what was computed, and two processes at once count each item once.
func TestInterruptedAndConcurrent(t *testing.T) {
	t.Parallel()
	o := newOutput(t, 40)
	ctx, cancel := context.WithCancel(t.Context())
	counts, err := o.run(ctx, func(c *score.Config) {
		c.Parallel = 1
		compare := c.Metrics[0].Compare
		n := 0
		c.Metrics = c.Metrics[:1]
		c.Metrics[0].Compare = func(ctx context.Context, x, y *raster.Image) (float64, error) {
			if n++; n == 10 {
				cancel()
			}
			return compare(ctx, x, y)
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	done := counts[0].Scored
	if done < 9 || done == 40 || len(o.figures()) != done {
		t.Fatalf("%d scores computed, %d stored", done, len(o.figures()))
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := o.run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := o.figures(); len(got) != 40 {
		t.Errorf("%d figures", len(got))
	}
	counts, err = o.run(t.Context())
	o.want(counts, err, score.Count{Items: 40, Present: 40})
	var csv strings.Builder
	must(t, table.WriteCSV(&csv, result.Results(t.Context(), []result.Output{{Address: "out", Store: o.Store}}), nil))
	if n := strings.Count(csv.String(), "\n"); n != 41 {
		t.Errorf("%d lines, want 41", n)
	}
}

// TestDamage: a damaged picture is named and the others are scored; a damaged part and a full disk are one clear error.
func TestDamage(t *testing.T) {
	t.Parallel()
	o := newOutput(t, 3)
	id := o.add(9, 120, true)
	o.put(item.Key(id, item.FileRestored), []byte("no picture"))
	var problems []string
	watch := func(c *score.Config) {
		c.Problem = func(key string, err error) { problems = append(problems, key+" "+err.Error()) }
	}
	counts, err := o.run(t.Context(), watch)
	o.want(counts, err, score.Count{Items: 4, Scored: 3, Wrong: 1})
	if len(problems) != 1 || !strings.Contains(problems[0], id+"/restored.png picture has the SHA-256") {
		t.Errorf("problems %q", problems)
	}

	full := newOutput(t, 3)
	full.fail = storage.ErrNoSpace
	if _, err := full.run(t.Context()); !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), "write scores/psnr@1,png/") {
		t.Errorf("full disk: %v", err)
	}
	full.fail = nil
	counts, err = full.run(t.Context())
	full.want(counts, err, score.Count{Items: 3, Scored: 3})

	for _, tt := range []struct{ part, want string }{
		{"", "decode line 1"},
		{"{\"metric\":\"../x@1\"}\n", "is no id"},
		{"{\"metric\":\"psnr@1:png\"}\n{\"item\":\"xyz\"}\n", "decode line 2: item or pictures are no digest; move the file away and run ddiff score again"},
		{"{\"metric\":\"psnr@1:png\"}\n{\"item\":", "decode line 2"},
	} {
		o.put("scores/x/damaged.jsonl", []byte(tt.part))
		_, err := o.run(t.Context())
		if !errors.Is(err, result.ErrScores) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "scores/x/damaged.jsonl") {
			t.Errorf("%q: error %v, want %q", tt.part, err, tt.want)
		}
	}
}

// TestUnclipped: metrics without clipping compare the array beside the picture; an item without it is skipped, and a damaged one is named.
func TestUnclipped(t *testing.T) {
	t.Parallel()
	o := newOutput(t, 2)
	store := func(i int, truth, restored func(at int) float32, shape ...int) (array string) {
		t.Helper()
		values := [2][]float32{make([]float32, 3*16*16), make([]float32, 3*16*16)}
		for at := range values[0] {
			values[0][at], values[1][at] = truth(at), restored(at)
		}
		picture, err := raster.EncodePNG(&raster.Image{Channels: 3, Height: 16, Width: 16, Pix: values[0]})
		must(t, err)
		data, err := raster.EncodeNPY(shape, values[1])
		must(t, err)
		id := o.add(i, 100, true)
		var r item.Result
		key := item.Key(id, item.FileResult)
		text, err := o.Get(t.Context(), key)
		must(t, err)
		must(t, json.Unmarshal(text, &r))
		for file, data := range map[string][]byte{item.FileTruth: picture, item.FileUnclipped: data} {
			r.Artifacts[file] = regular.SHA256(data)
			o.put(item.Key(id, file), data)
		}
		text, err = json.Marshal(r)
		must(t, err)
		o.put(key, text)
		return item.Key(id, item.FileUnclipped)
	}
	// Black and white; every value is 0.2 too high, half of them beyond white: 20 log10(2/0.2).
	truth := func(at int) float32 { return float32(at%2*2 - 1) }
	store(5, truth, func(at int) float32 { return truth(at) + 0.2 }, 3, 16, 16)
	store(6, truth, truth, 3, 16, 16) // equal
	var problems []string
	run := func() ([]score.Count, error) {
		return o.run(t.Context(), func(c *score.Config) {
			c.Metrics = nil
			for _, name := range score.UnclippedNames() {
				m, ok := score.Named(name, "test")
				if !ok {
					t.Fatalf("no metric %s", name)
				}
				c.Metrics = append(c.Metrics, m)
			}
			c.Problem = func(key string, err error) { problems = append(problems, key+" "+err.Error()) }
		})
	}
	counts, err := run()
	must(t, err)
	for i, want := range []score.Count{
		{Metric: "psnr@reference_range", Items: 4, Scored: 1, Skipped: 3}, // no array twice, and equal images
		{Metric: "ssim@window5", Items: 4, Scored: 2, Skipped: 2},
	} {
		if counts[i] != want {
			t.Errorf("counts %+v, want %+v", counts[i], want)
		}
	}
	found := false
	for r, err := range result.Results(t.Context(), []result.Output{{Address: "out", Store: o.Store}}) {
		must(t, err)
		for _, s := range r.Scores {
			if r.Item.Name == "image5" && s.Metric == "psnr@reference_range" {
				found = s.Value != nil && math.Abs(*s.Value-20) <= 1e-4
			}
		}
	}
	if !found {
		t.Error("psnr@reference_range is not 20 dB")
	}
	damaged := store(7, truth, truth, 3*16*16)
	changed := store(8, truth, truth, 3, 16, 16)
	o.put(changed, []byte("other"))
	counts, err = run()
	if err != nil || counts[0].Wrong != 2 || counts[1].Wrong != 2 {
		t.Errorf("counts %+v, %v", counts, err)
	}
	slices.Sort(problems)
	all := strings.Join(problems, "\n")
	if len(problems) != 2 || !strings.Contains(all, damaged+" picture: its shape is [768], want [channels, rows, columns]") || !strings.Contains(all, changed+" picture has the SHA-256") {
		t.Errorf("problems %q", problems)
	}
	// A damaged array costs the metrics that compare it.
	counts, err = o.run(t.Context(), func(c *score.Config) {
		unclipped, _ := score.Named("psnr@reference_range", "test")
		c.Metrics = append([]score.Metric{unclipped}, c.Metrics...)
	})
	must(t, err)
	if counts[0].Wrong != 2 || counts[1].Wrong != 0 || counts[1].Scored != 6 {
		t.Errorf("counts %+v, want 2 wrong arrays and 6 scored pictures", counts)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPartsAreBounded: many scores are several writes, whose names follow from their bytes.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	o := newOutput(t, 25)
	counts, err := o.run(t.Context(), func(c *score.Config) { c.Metrics, c.PartSize = c.Metrics[:1], 10 })
	o.want(counts, err, score.Count{Items: 25, Scored: 25})
	parts := map[string]bool{}
	for info, err := range o.List(t.Context(), result.ScoresFolder) {
		must(t, err)
		data, err := o.Store.Get(t.Context(), info.Key)
		must(t, err)
		sum := sha256.Sum256(data)
		parts[info.Key] = strings.HasSuffix(info.Key, fmt.Sprintf("/%x.jsonl", sum[:8]))
	}
	if len(parts) != 3 || slices.Contains(slices.Collect(maps.Values(parts)), false) {
		t.Errorf("parts %v", parts)
	}
}
