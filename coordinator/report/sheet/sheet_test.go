package sheet

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"strings"
	"testing"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

// sheetOf writes the sheet of a task and reads it back.
func sheetOf(t *testing.T, store *reporttest.Memory, results []manifest.Result) (image.Image, []error) {
	t.Helper()
	ordered, err := entry.Collect(reporttest.Stream(results), nil, false)
	reporttest.Must(t, err)
	var done []*entry.Entry
	for e, err := range ordered.All() {
		reporttest.Must(t, err)
		if e.Done() {
			done = append(done, e)
		}
	}
	lost, err := Write(t.Context(), store, File{Key: "sheets/x.png"}, done, len(results), len(done))
	reporttest.Must(t, err)
	img, err := png.Decode(bytes.NewReader(store.Files["sheets/x.png"]))
	reporttest.Must(t, err)
	return img, lost
}

// flat is a PNG of one colour.
func flat(t *testing.T, width, height int, c color.Color) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Set(i%width, i/width, c)
	}
	var out bytes.Buffer
	reporttest.Must(t, png.Encode(&out, img))
	return out.Bytes()
}

func near(a, b color.Color) bool {
	r, g, bl, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	d := func(x, y uint32) bool { return max(x, y)-min(x, y) < 3<<8 }
	return d(r, r2) && d(g, g2) && d(bl, b2)
}

func TestSheetDrawsPicturesInTheirCells(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	colors := map[string]color.RGBA{
		manifest.FileTruth:       {200, 30, 30, 255},
		manifest.FileMeasurement: {30, 200, 30, 255},
		manifest.FileRestored:    {30, 30, 200, 255},
	}
	r := reporttest.Result(t, "hdr", "ddiff", "a.png", 0, reporttest.Scored(25, 20, 0.7, 0))
	r.Artifacts = map[string]string{}
	for file, c := range colors {
		// The aspect ratio 2:1 must survive in the square cell.
		store.Files[manifest.ItemKey(r.Item.ID, file)] = flat(t, 64, 32, c)
		r.Artifacts[file] = ""
	}
	img, lost := sheetOf(t, store, []manifest.Result{r})
	if len(lost) != 0 {
		t.Fatal(lost)
	}
	top := sheetMargin + sheetHeader + 4
	for i, file := range []string{manifest.FileTruth, manifest.FileMeasurement, manifest.FileRestored} {
		x := sheetMargin + sheetCaption + i*(sheetCell+sheetGap) + sheetCell/2
		if got := img.At(x, top+sheetCell/2); !near(got, colors[file]) {
			t.Errorf("%s: centre of the cell is %v, want %v", file, got, colors[file])
		}
		if got := img.At(x, top+sheetCell/8); !near(got, Paper) {
			t.Errorf("%s: above the picture is %v, want paper", file, got)
		}
	}
}

func TestSheetWithoutTruthHasTwoColumns(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	with := reporttest.Result(t, "hdr", "ddiff", "a.png", 0)
	reporttest.Illustrate(t, store, &with, 1)
	without := reporttest.Result(t, "hdr", "ddiff", "b.npy", 0, func(r *manifest.Result) { r.Item.Image = nil })
	reporttest.Illustrate(t, store, &without, 2)
	three, _ := sheetOf(t, store, []manifest.Result{with, without})
	two, _ := sheetOf(t, store, []manifest.Result{without})
	if d := three.Bounds().Dx() - two.Bounds().Dx(); d != sheetCell+sheetGap {
		t.Errorf("a truth widens the sheet by %d pixels, want %d", d, sheetCell+sheetGap)
	}
}

func TestSheetIsBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []manifest.Result
	for i := range MaxRows + 6 {
		r := reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("%d.png", i), i)
		r.Artifacts = map[string]string{manifest.FileRestored: ""}
		store.Files[manifest.ItemKey(r.Item.ID, manifest.FileRestored)] = flat(t, 8, 8, Ink)
		results = append(results, r)
	}
	img, _ := sheetOf(t, store, results)
	want := 2*sheetMargin + sheetHeader + MaxRows*(sheetCell+sheetGap)
	if got := img.Bounds().Dy(); got != want {
		t.Errorf("height = %d, want %d", got, want)
	}
	if len(store.Reads) != MaxRows {
		t.Errorf("%d pictures read, want %d", len(store.Reads), MaxRows)
	}
	counts := sheetCounts(len(results)+1, len(results))
	if want := "70 of 71 items restored; the first 64 are shown, 6 more in results.csv"; counts != want {
		t.Errorf("counts = %q, want %q", counts, want)
	}
}

// A long title ends before the margin.
func TestSheetTitleIsBounded(t *testing.T) {
	t.Parallel()
	s := New(1, []Column{{File: manifest.FileRestored, Title: "restored"}})
	s.Header(strings.Repeat("W", 200), strings.Repeat("W", 200))
	b := s.canvas.Bounds()
	for y := range b.Dy() {
		for x := b.Dx() - sheetMargin; x < b.Dx(); x++ {
			if !near(s.canvas.At(x, y), Paper) {
				t.Fatalf("the title is drawn in the margin at %d, %d", x, y)
			}
		}
	}
}

func TestSheetMarksUnreadablePictures(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	r := reporttest.Result(t, "hdr", "ddiff", strings.Repeat("long name ", 20), 0)
	reporttest.Illustrate(t, store, &r, 1)
	delete(store.Files, manifest.ItemKey(r.Item.ID, manifest.FileTruth))
	store.Files[manifest.ItemKey(r.Item.ID, manifest.FileRestored)] = []byte("not a picture")
	_, lost := sheetOf(t, store, []manifest.Result{r})
	if len(lost) != 2 || !errors.Is(lost[0], fs.ErrNotExist) || !strings.Contains(lost[1].Error(), "restored.png") {
		t.Errorf("lost = %v", lost)
	}
}

func TestSheetWithoutFinishedItems(t *testing.T) {
	t.Parallel()
	img, lost := sheetOf(t, reporttest.NewMemory(), []manifest.Result{
		reporttest.Result(t, "hdr", "ddiff", "a.png", 0, reporttest.Ended(manifest.OutcomeFailed, "x")),
	})
	if len(lost) != 0 || img.Bounds().Dy() != 2*sheetMargin+sheetHeader {
		t.Errorf("bounds %v, lost %v", img.Bounds(), lost)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	if got := cutLabel("abcdefghij", 7*runeWidth); got != "abcd..." {
		t.Errorf("cut = %q", got)
	}
	if got := cutLabel("abc", 3*runeWidth); got != "abc" {
		t.Errorf("cut = %q", got)
	}
	got := wrapLabel("abcdefghijklmnop", 5*runeWidth, 3)
	if len(got) != 3 || got[0] != "abcde" || got[1] != "fghij" || got[2] != "kl..." {
		t.Errorf("wrapped = %q", got)
	}
}
