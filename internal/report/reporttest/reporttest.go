// Package reporttest makes results, pictures and traces for tests of reports, and a store in memory.
package reporttest

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/regular"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
	"ddiff/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares with testdata/name, or rewrites the file under -update.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		Must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update accepts it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// With changes the noise level and the settings of a result.
func With(sigma float64, settings string) func(*item.Result) {
	return func(r *item.Result) { r.Item.Sigma, r.Item.Solver = sigma, json.RawMessage(settings) }
}

// Traced stores a trace with a curve of two norms for a result.
func Traced(t *testing.T, store *Memory, r *item.Result, data, primal []float64) {
	t.Helper()
	trace := item.Trace{item.CurveTimestep: make([]float64, len(data)), "data_norm": data}
	if primal != nil {
		trace["primal_norm"] = primal
	}
	text, err := json.Marshal(trace)
	Must(t, err)
	store.Files[item.Key(r.Item.ID, item.FileTrace)] = text
	r.Artifacts = map[string]string{item.FileTrace: ""}
}

// ReadFigures returns the rows of each figure's CSV file, without the header, as lists by series. A point is "n x y low high", with 6 digits.
func ReadFigures(t *testing.T, store *Memory) map[string]map[string][]string {
	t.Helper()
	out := make(map[string]map[string][]string)
	for key, data := range store.Files {
		name, ok := strings.CutSuffix(key, ".csv")
		if !ok {
			continue
		}
		rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil || strings.Join(rows[0], ",") != "panel,series,x_name,x,y_name,y,low,high,n,image,item" {
			t.Fatalf("%s: %v, header %q", key, err, rows)
		}
		out[name] = make(map[string][]string)
		for _, row := range rows[1:] {
			series := strings.TrimSpace(strings.TrimSpace(row[0]+" "+row[1]) + " " + row[4])
			point := row[9]
			for _, column := range []int{3, 5, 6, 7} {
				text := "-"
				if v, err := strconv.ParseFloat(row[column], 64); err == nil {
					text = strconv.FormatFloat(v, 'g', 6, 64)
				}
				point += " " + text
			}
			out[name][series] = append(out[name][series], strings.TrimSpace(point+" "+row[8]))
		}
	}
	return out
}

// Memory is a store in a map.
type Memory struct {
	mu    sync.Mutex
	Files map[string][]byte
	// Reads counts the reads by key.
	Reads map[string]int
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{Files: make(map[string][]byte), Reads: make(map[string]int)}
}

// Get counts the read and returns the bytes under the key.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Reads[key]++
	data, ok := m.Files[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, fs.ErrNotExist)
	}
	return data, nil
}

// Put stores a copy of the bytes.
func (m *Memory) Put(ctx context.Context, key string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Files[key] = bytes.Clone(data)
	return nil
}

// List yields the keys with the prefix, in their order.
func (m *Memory) List(_ context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for _, key := range slices.Sorted(slices.Values(Keys(m, prefix))) {
			if !yield(storage.Info{Key: key, Size: int64(len(m.Files[key]))}, nil) {
				return
			}
		}
	}
}

// Delete removes the key.
func (m *Memory) Delete(_ context.Context, key string) error {
	delete(m.Files, key)
	return nil
}

// Export writes the files below a directory, as a directory store would.
func (m *Memory) Export(t *testing.T, dir string) {
	t.Helper()
	for key, data := range m.Files {
		path := filepath.Join(dir, filepath.FromSlash(key))
		Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		Must(t, os.WriteFile(path, data, 0o644))
	}
}

// Result is a finished item; change adapts it before its identity is computed.
func Result(t *testing.T, task, method, name string, run int, change ...func(*item.Result)) item.Result {
	t.Helper()
	r := item.Result{
		Schema:  item.SchemaVersion,
		Outcome: item.OutcomeDone,
		Seconds: 2,
		Steps:   100,
		Runtime: item.Runtime{Provider: "cpu"},
		Metrics: item.Metrics{}, MetricIDs: map[string]string{},
		// The minutes of a campaign that began at nine.
		Finished: time.Date(2026, 3, 1, 9, run%60, 25, 0, time.UTC),
		Item: item.Item{
			Campaign: "test", Name: name, Task: task, Method: method, Run: run,
			Width: 128, Height: 128, Fit: item.FitCenterCrop, Sigma: 0.05, Seed: 7,
			Image:  &item.Source{Path: name, SHA256: regular.SHA256([]byte(name))},
			Solver: json.RawMessage(`{"steps":100}`), Prior: strings.Repeat("ab", 32),
		},
	}
	for _, m := range metric.Builtin() {
		r.MetricIDs[m.Name] = m.ID()
	}
	if method == "ddiff" { // the results of other methods are from an earlier version
		r.Cost = item.Cost{Network: 100, Operator: 300}
	}
	for _, c := range change {
		c(&r)
	}
	Must(t, r.Item.Identify())
	return r
}

// Scored sets the scores of a result, in dB where they are PSNR.
func Scored(psnr, baseline, ssim, residual float64) func(*item.Result) {
	return func(r *item.Result) {
		r.Metrics = item.Metrics{
			"psnr": psnr, "baseline_psnr": baseline, "ssim": ssim, "residual": residual,
		}
	}
}

// Ended makes a result that did not finish.
func Ended(outcome item.Outcome, reason string) func(*item.Result) {
	return func(r *item.Result) {
		r.Outcome, r.Reason, r.Seconds, r.Steps, r.Cost = outcome, reason, 0, 0, item.Cost{}
	}
}

// Illustrate stores the artifacts of a finished item.
func Illustrate(t *testing.T, store *Memory, r *item.Result, seed int) {
	t.Helper()
	r.Artifacts = make(map[string]string)
	add := func(file string, data []byte) {
		store.Files[item.Key(r.Item.ID, file)] = data
		r.Artifacts[file] = "not checked here"
	}
	const side = 128
	if r.Item.Image != nil {
		add(item.FileTruth, Scene(t, side, seed, 0))
	}
	measured := side
	if r.Item.Task == "super_resolution" {
		measured = side / 4
	}
	add(item.FileMeasurement, Scene(t, measured, seed, 0.16))
	add(item.FileRestored, Scene(t, side, seed, 0.03))
	trace, err := json.Marshal(Trace(100, seed))
	Must(t, err)
	add(item.FileTrace, trace)
}

// Scene is a picture of a disc on a gradient as PNG, with noise of the given strength on [0, 1].
func Scene(t *testing.T, side, seed int, noise float64) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	level := func(v float64) uint8 { return uint8(255 * min(max(v+noise*random.NormFloat64(), 0), 1)) }
	for i := range side * side {
		u, v := float64(i%side)/float64(side), float64(i/side)/float64(side)
		disc := 0.0
		if math.Hypot(u-0.5, v-0.1*float64(seed%10)) < 0.2 {
			disc = 0.5
		}
		img.SetRGBA(i%side, i/side, color.RGBA{level(u/2 + disc), level(v/2 + disc), level(0.5 - u/2 + disc), 255})
	}
	var out bytes.Buffer
	Must(t, png.Encode(&out, img))
	return out.Bytes()
}

// Trace has curves of a plausible shape; they are test data, no solver made them.
func Trace(steps, seed int) item.Trace {
	tr := item.Trace{}
	for k := range steps {
		tr[item.CurveTimestep] = append(tr[item.CurveTimestep], float64(1000-1000*(k+1)/steps))
	}
	for i, name := range []string{"data_norm", "primal_norm", "dual_norm"} {
		for k := range steps {
			wave := 1 + 0.15*math.Sin(float64(k)*0.9+float64(seed))
			tr[name] = append(tr[name], 90*wave*math.Exp(-float64((i+2)*k)/float64(steps))+0.3)
		}
	}
	return tr
}

// Keys returns the keys with the prefix, in no order.
func Keys(m *Memory, prefix string) []string {
	var out []string
	for key := range m.Files {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	return out
}

// Stream yields the results in the given order.
func Stream(results []item.Result) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		for _, r := range results {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// SweepResults has two photographs, Gaussian deblurring at three noise levels and super-resolution by 2 and 8, each with two step
// sizes.
func SweepResults(t *testing.T) []item.Result {
	t.Helper()
	var out []item.Result
	add := func(task string, sigma float64, params map[string]float64, psnr float64) {
		for i, name := range []string{"a", "b"} {
			for g, solver := range []string{`{"steps":50,"gamma0":8}`, `{"steps":50,"gamma0":10}`} {
				out = append(out, Result(t, task, "ddiff", name, 0, Scored(psnr+float64(i)+2*float64(g), 20, 0.5, 0), func(r *item.Result) {
					r.Item.Sigma, r.Item.Params, r.Item.Solver = sigma, params, json.RawMessage(solver)
				}))
			}
		}
	}
	for i, sigma := range []float64{0.1, 0.02, 0.05} {
		add("gaussian_deblur", sigma, map[string]float64{"std": 3}, 30-float64(i))
	}
	for i, factor := range []float64{8, 2} {
		add("super_resolution", 0.05, map[string]float64{"factor": factor}, 22+4*float64(i))
	}
	return out
}

// TableResults are the results of the golden files: two methods, several runs, a task without baseline, failures, and
// names that need natural order.
func TableResults(t *testing.T) []item.Result {
	t.Helper()
	noBaseline := func(r *item.Result) { delete(r.Metrics, "baseline_psnr") }
	return []item.Result{
		Result(t, "hdr", "ddiff", "img10", 0, Scored(27.5, 21, 0.81, 0.0021)),
		Result(t, "hdr", "ddiff", "img2", 0, Scored(26.25, 20, 0.79, 0.0019)),
		Result(t, "hdr", "ddiff", "img3", 0, Ended(item.OutcomeFailed, "no such file")),
		Result(t, "gaussian_deblur", "ddiff-hqs", "img2", 0, Scored(22, 24, 0.61, 0.012)),
		Result(t, "gaussian_deblur", "ddiff", "img2", 1, Scored(27, 24, 0.75, 0.0031)),
		Result(t, "gaussian_deblur", "ddiff", "img2", 0, Scored(26, 24, 0.74, 0.0028)),
		Result(t, "gaussian_deblur", "ddiff", "img10", 0, Scored(25, 23, 0.70, -0.0004)),
		Result(t, "gaussian_deblur", "ddiff-hqs", "img10", 0, Scored(23, 23, 0.60, 0.010)),
		Result(t, "phase_retrieval", "ddiff", "img2", 0, Scored(14, 0, 0.2, 0.2), noBaseline),
		Result(t, "phase_retrieval", "ddiff", "img2", 1, Scored(30, 0, 0.83, 0.0001234567), noBaseline),
		Result(t, "phase_retrieval", "ddiff", "img2", 2, Ended(item.OutcomeDead, "given up after 5 attempts")),
		Result(t, "denoise,odd", "ddiff", "a \"quoted\" name", 0, func(r *item.Result) {
			r.Metrics["psnr"] = math.Inf(1)
			r.Metrics["residual"] = 1e-7
		}),
	}
}

// Must ends the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Contains checks that a text has all wanted parts.
func Contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%.4000s", want, text)
		}
	}
}

// Later adds a score that was computed after solving.
func Later(id string, v float64) func(*item.Result) {
	return func(r *item.Result) { r.Scores = append(r.Scores, item.Score{Metric: id, Value: &v}) }
}
