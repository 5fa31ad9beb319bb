package report

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/published"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/restore/item"
)

// TestGoldenReports: every file of four reports is that of testdata, byte for byte; a PNG in its
// pixels. They do not depend on the order of the results. A wanted change shows there as changed lines: look at the files before -update.
func TestGoldenReports(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*testing.T, *reporttest.Memory) (Campaign, []item.Result){
		"tasks": func(t *testing.T, store *reporttest.Memory) (Campaign, []item.Result) {
			return testCampaign(), campaign(t, store)
		},
		"sweep":     sweepCampaign,
		"runs":      runsCampaign,
		"published": publishedCampaign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := reporttest.NewMemory()
			c, results := build(t, store)
			inputs := maps.Clone(store.Files)
			rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			if _, err := Write(t.Context(), store, c, reporttest.Stream(results)); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			for _, key := range slices.Sorted(maps.Keys(store.Files)) {
				if _, ok := inputs[key]; !ok {
					fmt.Fprintln(&out, key, describe(t, key, store.Files[key]))
				}
			}
			reporttest.Golden(t, "files_"+name+".txt", out.Bytes())
			for key, n := range store.Reads {
				if n > 3 { // for the contact sheet, the mosaic and the comparison of runs
					t.Errorf("%s was read %d times", key, n)
				}
			}
		})
	}
}

// describe returns the size and a digest of a file; of a picture those of its pixels.
func describe(t *testing.T, key string, data []byte) string {
	t.Helper()
	size := fmt.Sprintf("%d bytes", len(data))
	if strings.HasSuffix(key, ".png") {
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		b := img.Bounds()
		pixels := image.NewNRGBA(b)
		draw.Draw(pixels, b, img, b.Min, draw.Src)
		data, size = pixels.Pix, fmt.Sprintf("%dx%d", b.Dx(), b.Dy())
	}
	return fmt.Sprintf("%s %x", size, sha256.Sum256(data))[:len(size)+17]
}

// sweepCampaign varies noise, steps, a setting and a parameter of the operator, with two methods, curves and failed items.
func sweepCampaign(t *testing.T, store *reporttest.Memory) (Campaign, []item.Result) {
	var results []item.Result
	add := func(method string, i int, change ...func(*item.Result)) {
		v := float64((i*7+len(results)*3)%11) / 2
		change = append([]func(*item.Result){reporttest.Scored(18+v, 15+v/2, 0.5+v/20, 0.001+v/1000)}, change...)
		r := reporttest.Result(t, "gaussian_deblur", method, fmt.Sprintf("image %d.png", i), 0, change...)
		reporttest.Illustrate(t, store, &r, i)
		results = append(results, r)
	}
	for i := range 3 {
		for _, sigma := range []float64{0.02, 0.05} {
			for _, steps := range []int{10, 40} {
				add("ddiff", i, reporttest.With(sigma, fmt.Sprintf(`{"steps":%d,"gamma0":8}`, steps)), func(r *item.Result) {
					r.Steps, r.Seconds = 2*steps, float64(steps)/16
				})
			}
			add("ddiff", i, reporttest.With(sigma, `{"steps":10,"gamma0":4}`))
			add("diffpir", i, reporttest.With(sigma, `{"steps":10}`))
		}
	}
	results = append(results,
		reporttest.Result(t, "gaussian_deblur", "ddiff", "bad.png", 0, reporttest.With(0.05, `{"steps":10,"gamma0":8}`), reporttest.Ended(item.OutcomeFailed, "decode bad.png: EOF")),
		reporttest.Result(t, "gaussian_deblur", "diffpir", "bad.png", 0, reporttest.With(0.05, `{"steps":10}`), reporttest.Ended(item.OutcomeDead, "out of memory")))
	return Campaign{Name: "sweep", Outputs: []string{"one", "s3://bucket/two"}, Seed: 3, Select: selection.First}, results
}

// runsCampaign has several runs of one measurement, and rows with one run.
func runsCampaign(t *testing.T, store *reporttest.Memory) (Campaign, []item.Result) {
	results := manyRuns(t, store, 4, 3)
	for i := range results {
		results[i].Metrics["psnr"] = 20 + float64(i*5%7)
	}
	for i := range 7 {
		r := reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("single %d", i), 0, reporttest.Scored(25-float64(i), 20, 0.9, 0.002))
		reporttest.Illustrate(t, store, &r, i)
		results = append(results, r)
	}
	c := testCampaign()
	c.Select = selection.BestPSNR
	return c, results
}

// publishedCampaign has two methods beside published figures, and images on which settings were chosen.
func publishedCampaign(t *testing.T, store *reporttest.Memory) (Campaign, []item.Result) {
	p, err := published.Parse("paper.csv", strings.NewReader(
		"task,method,psnr,ssim,images\nhdr,ddiff,27.5,0.9,100\nhdr,daps,26.25,,100\nsuper_resolution,ddiff,29.75,0.85,100\n"))
	reporttest.Must(t, err)
	var results []item.Result
	for i := range 7 {
		for m, method := range []string{"ddiff", "ddiff_hqs"} {
			psnr := 21 + float64((i*5+m*3)%9)
			for _, task := range []string{"hdr", "super_resolution"} {
				r := reporttest.Result(t, task, method, fmt.Sprintf("%d.png", i), 0, reporttest.Scored(psnr, 20, 0.8, 0.0025))
				reporttest.Illustrate(t, store, &r, i+20*m)
				results = append(results, r)
			}
		}
	}
	c := testCampaign()
	c.Published = p
	return c, results
}
