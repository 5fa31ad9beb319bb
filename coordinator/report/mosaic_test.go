package report

import (
	"bytes"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"testing"

	"ddiff/manifest"
)

// TestMosaicSelectsTheMiddleOfEachThird: of the first row of a task in the table, and of the first run of each image.
func TestMosaicSelectsTheMiddleOfEachThird(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for i := range 9 {
		for run := range 2 { // the second runs and the second method would win
			results = append(results,
				result(t, "hdr", "ddiff", fmt.Sprintf("img%d", i), run, scored(20+float64(i*5%9)+100*float64(run), 15, 0.5, 0)),
				result(t, "hdr", "diffpir", fmt.Sprintf("img%d", i), run, scored(50, 15, 0.5, 0)))
		}
		// Without a truth the largest residual comes first.
		results = append(results, result(t, "motion_deblur", "ddiff", fmt.Sprintf("img%d", i), 0, func(r *manifest.Result) { r.Metrics.Residual = new(float64(i)) }))
	}
	results = append(results, result(t, "inpaint_box", "ddiff", "only", 0))
	ordered, err := collect(stream(results), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := summarize(ordered, nil, RuleFirst, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newListing(summary, nil, maxListed)
	for _, err := range l.watch(ordered.all()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string][]string)
	for _, r := range mosaicRows(l) {
		for _, row := range r.items {
			got[r.label] = append(got[r.label], fmt.Sprintf("%s %.0f %.0f %d", l.Names[l.Name[row]], l.PSNR[row], l.Residual[row], l.Run[row]))
		}
	}
	for label, want := range map[string][]string{
		"High dynamic range": {"img2 21 0 0", "img8 24 0 0", "img5 27 0 0"}, // of 20 to 28
		"Motion deblurring":  {"img7 NaN 7 0", "img4 NaN 4 0", "img1 NaN 1 0"},
		"Inpainting (box)":   {"only NaN NaN 0"},
	} {
		if !slices.Equal(got[label], want) {
			t.Errorf("%s: %q, want %q", label, got[label], want)
		}
	}
}

func TestMosaicStatesItsRule(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := campaign(t, store)
	file, lost, err := writeMosaic(t.Context(), store, listingOf(t, results, maxListed))
	if err != nil || len(lost) != 0 {
		t.Fatal(err, lost)
	}
	img, err := png.Decode(bytes.NewReader(store.files[KeyMosaic]))
	if err != nil || img.Bounds().Dx() != file.Width || img.Bounds().Dy() != file.Height {
		t.Fatalf("picture %v, want %dx%d, %v", img.Bounds(), file.Width, file.Height, err)
	}
	if !strings.Contains(file.Rule, "middle image of each third") || !strings.Contains(file.Rule, "first row") || strings.Contains(file.Rule, "runs") {
		t.Errorf("rule %q", file.Rule)
	}
	// A page at 300 dots per inch.
	if file.Width < 1800 || file.Width > 2400 || file.Height > 3000 {
		t.Errorf("the mosaic has %dx%d pixels", file.Width, file.Height)
	}
}

// TestMosaicIsBounded: more tasks than rows are counted, and a report without finished items leaves no mosaic.
func TestMosaicIsBounded(t *testing.T) {
	t.Parallel()
	store := newMemory()
	var results []manifest.Result
	for i := range 12 + 3 {
		results = append(results, result(t, fmt.Sprintf("task with a very long name %d", i), "ddiff", "a", 0))
	}
	if _, err := Write(t.Context(), store, testCampaign(), stream(results)); err != nil {
		t.Fatal(err)
	}
	if page := string(store.files[KeyPage]); !strings.Contains(page, "3 more tasks are in the contact sheets") || store.files[KeyMosaic] == nil {
		t.Error("the page does not count the other tasks")
	}
	if _, err := Write(t.Context(), store, testCampaign(), stream(nil)); err != nil {
		t.Fatal(err)
	}
	if store.files[KeyMosaic] != nil || strings.Contains(string(store.files[KeyPage]), KeyMosaic) {
		t.Error("the mosaic of the earlier report is left")
	}
}
