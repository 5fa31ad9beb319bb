package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// paint stores a grey picture of an item with the given levels.
func paint(t *testing.T, store *reporttest.Memory, r *item.Result, file string, side int, level func(i int) float64) {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		img.SetGray(i%side, i/side, color.Gray{Y: uint8(math.Round(min(255, max(0, level(i)))))})
	}
	var out bytes.Buffer
	reporttest.Must(t, png.Encode(&out, img))
	if r.Artifacts == nil {
		r.Artifacts = map[string]string{}
	}
	r.Artifacts[file] = regular.SHA256(out.Bytes())
	reporttest.Must(t, store.Put(t.Context(), item.Key(r.Item.ID, file), out.Bytes()))
}

// manyRuns stores images with several runs each, drawn as the truth is: calibrated up to the rounding to 8 bits.
func manyRuns(t *testing.T, store *reporttest.Memory, images, runs int) (results []item.Result) {
	t.Helper()
	const side = 48
	random := rand.New(rand.NewPCG(3, 4))
	for i := range images {
		truth := make([]float64, side*side)
		for k := range truth {
			truth[k] = 128 + 16*random.NormFloat64()
		}
		for run := range runs {
			r := reporttest.Result(t, "phase_retrieval", "ddiff", fmt.Sprintf("image%d", i), run, reporttest.Scored(24, 20, 0.8, 0.001))
			paint(t, store, &r, item.FileTruth, side, func(k int) float64 { return truth[k] })
			paint(t, store, &r, item.FileRestored, side, func(int) float64 { return 128 + 16*random.NormFloat64() })
			results = append(results, r)
		}
	}
	return results
}

// TestRunsOfOneMeasurement follows synthetic runs to summary.json, the pictures and the page.
func TestRunsOfOneMeasurement(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := manyRuns(t, store, 4, 5)
	s, err := Write(t.Context(), store, Campaign{}, reporttest.Stream(results))
	reporttest.Must(t, err)
	b := s.Rows[0].BetweenRuns
	if b == nil || b.Measurements != 4 || b.Of != 4 || b.Runs != 20 || b.PSNROfMean.N != 4 {
		t.Fatalf("comparison %+v", b)
	}
	// The error of a run has the variance 2σ², of the mean of five runs σ²(1+1/5).
	if gain := b.PSNROfMean.Mean - b.MeanPSNR.Mean; !(math.Abs(gain-10*math.Log10(2/1.2)) <= 0.15) {
		t.Errorf("the mean is %.2f dB better, want %.2f", gain, 10*math.Log10(2/1.2))
	}
	c := b.Calibration
	// Truth and runs are equal draws in all three channels, so a third of the samples is independent: 9216.
	if !(math.Abs(*c.Ratio-1) <= 0.03) {
		t.Errorf("calibration %+v", c)
	}
	folder := runFolder + results[0].Item.ID
	for _, name := range []string{"/mean.png", "/deviation.png"} {
		img, err := png.Decode(bytes.NewReader(store.Files[folder+name]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sum := 0.0
		for k := range 48 * 48 {
			r, _, _, _ := img.At(k%48, k/48).RGBA()
			sum += float64(r>>8) / (48 * 48)
		}
		// Of five normal draws the expected standard deviation is 0.940 σ; white is 0.2.
		if want := map[string]float64{"/mean.png": 128, "/deviation.png": 0.940 * 16 / 255 / deviationWhite * 255}[name]; !(math.Abs(sum-want) <= 1) {
			t.Errorf("%s has the mean level %.1f, want %.1f", name, sum, want)
		}
	}
	index := string(store.Files[KeyPage])
	reporttest.Contains(t, index, "Between runs", folder+"/mean.png", "Deviation of 5 runs, white: 0.2")
	// A report without runs removes the pictures.
	s, err = Write(t.Context(), store, Campaign{}, reporttest.Stream(results[:1]))
	if err != nil || s.Rows[0].BetweenRuns != nil {
		t.Errorf("one run: %+v, %v", s.Rows[0].BetweenRuns, err)
	}
	if left := reporttest.Keys(store, runFolder); len(left) > 0 {
		t.Errorf("stale pictures %v", left)
	}
}

// TestRunsWithoutPictures: a missing picture leaves out its measurement, and a measurement without a truth has pictures only.
func TestRunsWithoutPictures(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := manyRuns(t, store, 2, 3)
	delete(store.Files, item.Key(results[1].Item.ID, item.FileRestored))
	s, err := Write(t.Context(), store, Campaign{}, reporttest.Stream(results))
	if b := s.Rows[0].BetweenRuns; !errors.Is(err, result.ErrIncomplete) || b == nil || b.Measurements != 1 || b.Of != 2 {
		t.Errorf("comparison %+v, error %v", b, err)
	}
	swapped := reporttest.NewMemory()
	results = manyRuns(t, swapped, 2, 3)
	swapped.Files[item.Key(results[1].Item.ID, item.FileRestored)] = swapped.Files[item.Key(results[4].Item.ID, item.FileRestored)]
	s, err = Write(t.Context(), swapped, Campaign{}, reporttest.Stream(results))
	if b := s.Rows[0].BetweenRuns; !errors.Is(err, result.ErrArtifact) || b == nil || b.Measurements != 1 || b.Of != 2 {
		t.Errorf("with the picture of another item: comparison %+v, error %v", b, err)
	}
	blind := reporttest.NewMemory()
	results = manyRuns(t, blind, 1, 2)
	for i := range results {
		delete(results[i].Artifacts, item.FileTruth)
		results[i].Metrics = item.Metrics{"residual": 0.001}
	}
	s, err = Write(t.Context(), blind, Campaign{}, reporttest.Stream(results))
	if b := s.Rows[0].BetweenRuns; err != nil || b.Calibration != nil || b.PSNROfMean.N != 0 || len(reporttest.Keys(blind, runFolder)) != 2 {
		t.Errorf("comparison %+v, error %v", b, err)
	}
	full := reporttest.NewMemory()
	results = manyRuns(t, full, 1, 2)
	if _, err := Write(t.Context(), failing{full}, Campaign{}, reporttest.Stream(results)); !errors.Is(err, errTestFull) {
		t.Errorf("error %v, want that of the store", err)
	}
}

// TestRunsAreSampledEvenly: a large row is compared in part, within the budget of pictures.
func TestRunsAreSampledEvenly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ measurements, runs, pictures, want int }{
		{100, 4, 1024, 100}, {100, 4, 400, 100}, {95, 2, 20, 10}, {1, 5000, 2048, 1}, {0, 0, 2048, 0},
	} {
		var all []*entry.Measurement
		for i := range tt.measurements {
			all = append(all, &entry.Measurement{Items: i, Done: make([]*entry.Entry, tt.runs)})
		}
		got := evenly(all, tt.pictures)
		if len(got) != tt.want || tt.want == 10 && (got[0].Items != 0 || got[9].Items < 80) {
			t.Errorf("%+v: %d measurements are compared", tt, len(got))
		}
	}
}

var errTestFull = errors.New("no space")

// failing refuses the pictures of runs.
type failing struct{ *reporttest.Memory }

func (f failing) Put(ctx context.Context, key string, data []byte) error {
	if strings.HasPrefix(key, runFolder) {
		return errTestFull
	}
	return f.Memory.Put(ctx, key, data)
}

// 1e-8 is added to the mean square: equal samples have 80 dB.
func TestPSNROfSamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		difference, want float64
	}{{0, 80}, {1e-4, 80 - 10*math.Log10(2)}, {0.1, -10 * math.Log10(0.01+1e-8)}} {
		if got := psnrOf([]float64{0.5, 0.25}, []float64{0.5 + c.difference, 0.25 - c.difference}); !(math.Abs(got-c.want) <= 1e-9) {
			t.Errorf("a difference of %g has %g dB, want %g", c.difference, got, c.want)
		}
	}
}
