package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/restore/operator"
	"ddiff/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/name, or rewrites the file under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update accepts it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// memory is a store in a map.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
	// reads counts the reads by key.
	reads map[string]int
}

func newMemory() *memory {
	return &memory{files: make(map[string][]byte), reads: make(map[string]int)}
}

func (m *memory) Get(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads[key]++
	data, ok := m.files[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, fs.ErrNotExist)
	}
	return data, nil
}

func (m *memory) Put(ctx context.Context, key string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[key] = bytes.Clone(data)
	return nil
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for _, key := range keys(m, prefix) {
			if !yield(storage.Info{Key: key}, nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(_ context.Context, key string) error {
	delete(m.files, key)
	return nil
}

// export writes the files below a directory, as a directory store would.
func (m *memory) export(t *testing.T, dir string) {
	t.Helper()
	for key, data := range m.files {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// result is a finished item; change adapts it before its identity is computed.
func result(t *testing.T, task, method, name string, run int, change ...func(*manifest.Result)) manifest.Result {
	t.Helper()
	r := manifest.Result{
		Schema:  manifest.SchemaVersion,
		Outcome: manifest.OutcomeDone,
		Seconds: 2,
		Steps:   100,
		Runtime: manifest.Runtime{Provider: "cpu"},
		// The minutes of a campaign that began at nine.
		Finished: time.Date(2026, 3, 1, 9, run%60, 25, 0, time.UTC),
		Item: manifest.Item{
			Campaign: "test", Name: name, Task: task, Method: method, Run: run,
			Width: 128, Height: 128, Fit: manifest.FitCenterCrop, Sigma: 0.05, Seed: 7,
			Image:  &manifest.Source{Path: name, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))},
			Solver: json.RawMessage(`{"steps":100}`), Prior: strings.Repeat("ab", 32),
		},
	}
	if method == "ddiff" { // the results of other methods are from an earlier version
		r.Cost = manifest.Cost{Network: 100, Operator: 300}
	}
	for _, c := range change {
		c(&r)
	}
	if err := r.Item.Identify(); err != nil {
		t.Fatal(err)
	}
	return r
}

func scored(psnr, baseline, ssim, residual float64) func(*manifest.Result) {
	return func(r *manifest.Result) {
		r.Metrics = manifest.Metrics{
			PSNR: new(psnr), BaselinePSNR: new(baseline), SSIM: new(ssim), Residual: new(residual),
		}
	}
}

func ended(outcome manifest.Outcome, reason string) func(*manifest.Result) {
	return func(r *manifest.Result) {
		r.Outcome, r.Reason, r.Seconds, r.Steps, r.Cost = outcome, reason, 0, 0, manifest.Cost{}
	}
}

// testCampaign is the campaign of the fixtures.
func testCampaign() Campaign {
	return Campaign{
		Name: "procedural test data", Preset: "natural", Prior: "test-prior", PriorLicence: "CC0-1.0",
		Steps: 100, Seed: 7, Select: RuleFirst,
	}
}

// campaign stores a campaign of synthetic pictures and curves: eight tasks, one of them with two methods, a measurement
// without truth, one failed and one dead item.
func campaign(t *testing.T, store *memory) []manifest.Result {
	t.Helper()
	var results []manifest.Result
	names := []string{"harbour.png", "meadow_2.png", "meadow_10.png"}
	for ti, task := range operator.Builtin().Names()[:8] {
		for ni, name := range names {
			r := result(t, task, "ddiff", name, 0,
				scored(23+float64(ni)*1.3+float64(ti)*0.4, 21.5+float64(ti)*0.3, 0.71+0.02*float64(ni), 0.0031-0.001*float64(ni)))
			if task == "phase_retrieval" {
				r.Metrics.BaselinePSNR = nil
			}
			illustrate(t, store, &r, ti*10+ni)
			results = append(results, r)
		}
	}
	for ni, name := range names {
		r := result(t, "super_resolution", "ddiff-hqs", name, 0, scored(21+0.9*float64(ni), 21.5, 0.62, 0.0052))
		illustrate(t, store, &r, 100+ni)
		results = append(results, r)
	}
	blind := result(t, "motion_deblur", "ddiff", "telescope.npy", 0, func(r *manifest.Result) {
		r.Item.Image, r.Item.Measurement = nil, &manifest.Source{Path: "telescope.npy", SHA256: strings.Repeat("cd", 32)}
		r.Metrics = manifest.Metrics{Residual: new(0.0012)}
	})
	illustrate(t, store, &blind, 200)
	return append(results, blind,
		result(t, "hdr", "ddiff", "broken.png", 0, ended(manifest.OutcomeFailed, "decode broken.png: unexpected EOF at byte 8192")),
		result(t, "hdr", "ddiff", "huge.png", 0, ended(manifest.OutcomeDead, "given up after 5 attempts: out of memory")),
	)
}

// illustrate stores the artifacts of a finished item.
func illustrate(t *testing.T, store *memory, r *manifest.Result, seed int) {
	t.Helper()
	r.Artifacts = make(map[string]string)
	add := func(file string, data []byte) {
		store.files[manifest.ItemKey(r.Item.ID, file)] = data
		r.Artifacts[file] = "not checked here"
	}
	const side = 128
	if r.Item.Image != nil {
		add(manifest.FileTruth, scene(t, side, seed, 0))
	}
	measured := side
	if r.Item.Task == "super_resolution" {
		measured = side / 4
	}
	add(manifest.FileMeasurement, scene(t, measured, seed, 0.16))
	add(manifest.FileRestored, scene(t, side, seed, 0.03))
	trace, err := json.Marshal(madeUpTrace(100, seed))
	if err != nil {
		t.Fatal(err)
	}
	add(manifest.FileTrace, trace)
}

// scene is a synthetic landscape as PNG, with noise of the given strength.
func scene(t *testing.T, side, seed int, noise float64) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	state := uint32(seed)*2654435761 + 12345
	level := func(v float64) uint8 {
		state = state*1664525 + 1013904223
		v += noise * (float64(state>>8)/float64(1<<24)*2 - 1) * 1.7
		return uint8(255 * min(max(v, 0), 1))
	}
	hue := float64(seed%10) * 0.5
	for y := range side {
		for x := range side {
			u, v := float64(x)/float64(side), float64(y)/float64(side)
			ridge := 0.55 + 0.12*math.Sin(7*u+hue) + 0.05*math.Sin(23*u+2*hue)
			r, g, b := 0.55+0.3*(1-v), 0.65+0.2*(1-v), 0.95-0.1*v
			if math.Hypot(u-0.72, v-0.22) < 0.09 {
				r, g, b = 0.99, 0.93, 0.7
			}
			if v > ridge {
				shade := 0.5 + 0.3*math.Sin(40*u+60*v)*(1-v)
				r, g, b = 0.3*shade+0.1*hue/5, 0.6*shade, 0.25*shade
			}
			img.SetRGBA(x, y, color.RGBA{level(r), level(g), level(b), 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// madeUpTrace has curves of a plausible shape; they are test data, no solver made them.
func madeUpTrace(steps, seed int) *manifest.Trace {
	tr := &manifest.Trace{}
	shapes := []struct {
		name  string
		value func(f, wave float64) float64
	}{
		{"data_norm", func(f, wave float64) float64 { return 90*math.Exp(-3*f)*wave + 11 }},
		{"primal_norm", func(f, wave float64) float64 { return 60*math.Exp(-5*f)*wave + 0.3 }},
		{"dual_norm", func(f, _ float64) float64 { return 40 * f * math.Exp(-2*f) }},
		{"delta_x", func(f, wave float64) float64 { return 80 * math.Exp(-6*f) * wave }},
		{"delta_z", func(f, wave float64) float64 { return 70 * math.Exp(-6.5*f) * wave }},
		{"delta_u", func(f, wave float64) float64 { return 20 * math.Exp(-4*f) / wave }},
	}
	for k := range steps {
		tr.Timestep = append(tr.Timestep, 1000-1000*(k+1)/steps)
	}
	for _, shape := range shapes {
		c := manifest.Curve{Name: shape.name}
		for k := range steps {
			c.Values = append(c.Values, shape.value(float64(k)/float64(steps), 1+0.15*math.Sin(float64(k)*0.9+float64(seed))))
		}
		tr.Curves = append(tr.Curves, c)
	}
	return tr
}

func keys(m *memory, prefix string) []string {
	var out []string
	for key := range maps.Keys(m.files) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	return out
}

// stream yields the results in the given order.
func stream(results []manifest.Result) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for _, r := range results {
			if !yield(r, nil) {
				return
			}
		}
	}
}
