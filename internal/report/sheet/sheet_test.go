package sheet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"strings"
	"testing"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/restore/item"
)

// sheetOf writes the sheet of a task and reads it back.
func sheetOf(t *testing.T, store *reporttest.Memory, results []item.Result) (image.Image, []error) {
	t.Helper()
	set, err := entry.Collect(reporttest.Stream(results), nil, selection.First, false)
	reporttest.Must(t, err)
	var done []*entry.Entry
	for _, e := range set.Entries {
		if e.Done() {
			done = append(done, e)
		}
	}
	lost, err := Write(t.Context(), store, File{Label: "X", Key: "sheets/x.png"}, done, len(results))
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
		item.FileTruth:       {200, 30, 30, 255},
		item.FileMeasurement: {30, 200, 30, 255},
		item.FileRestored:    {30, 30, 200, 255},
	}
	r := reporttest.Result(t, "hdr", "ddiff", "a.png", 0, reporttest.Scored(25, 20, 0.7, 0))
	r.Artifacts = map[string]string{}
	for file, c := range colors {
		// The aspect ratio 2:1 must survive in the square cell.
		store.Files[item.Key(r.Item.ID, file)] = flat(t, 64, 32, c)
		r.Artifacts[file] = ""
	}
	img, lost := sheetOf(t, store, []item.Result{r})
	if len(lost) != 0 {
		t.Fatal(lost)
	}
	top := margin + header
	for i, file := range []string{item.FileTruth, item.FileMeasurement, item.FileRestored} {
		x := margin + textWidth + i*(cell+gap) + cell/2
		if got := img.At(x, top+cell/2); !near(got, colors[file]) {
			t.Errorf("%s: centre of the cell is %v, want %v", file, got, colors[file])
		}
		if got := img.At(x, top+cell/8); !near(got, color.White) {
			t.Errorf("%s: above the picture is %v, want paper", file, got)
		}
	}
}

func TestSheetWithoutTruthHasTwoColumns(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	with := reporttest.Result(t, "hdr", "ddiff", "a.png", 0)
	reporttest.Illustrate(t, store, &with, 1)
	without := reporttest.Result(t, "hdr", "ddiff", "b.npy", 0, func(r *item.Result) { r.Item.Image = nil })
	reporttest.Illustrate(t, store, &without, 2)
	three, _ := sheetOf(t, store, []item.Result{with, without})
	two, _ := sheetOf(t, store, []item.Result{without})
	if d := three.Bounds().Dx() - two.Bounds().Dx(); d != cell+gap {
		t.Errorf("a truth widens the sheet by %d pixels, want %d", d, cell+gap)
	}
}

func TestSheetIsBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for i := range MaxRows + 6 {
		r := reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("%d.png", i), i)
		r.Artifacts = map[string]string{item.FileRestored: ""}
		store.Files[item.Key(r.Item.ID, item.FileRestored)] = flat(t, 8, 8, color.Black)
		results = append(results, r)
	}
	img, _ := sheetOf(t, store, results)
	want := 2*margin + header + MaxRows*rowHeight
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

// A long title ends before the margin, and a long name breaks.
func TestLongTextsAreBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	long := strings.Repeat("W", 200)
	sheet := Sheet{Title: long, Subtitle: long, Rows: []Row{{Name: long, Items: [][]Picture{{{None: long}}}}}}
	_, _, err := sheet.Write(t.Context(), store, "x")
	reporttest.Must(t, err)
	img, err := png.Decode(bytes.NewReader(store.Files["x"]))
	reporttest.Must(t, err)
	b := img.Bounds()
	for y := range b.Dy() {
		for _, x := range []int{margin - 3, margin + textWidth - gap/2, b.Dx() - margin + 3} {
			if x == margin+textWidth-gap/2 && y < margin+header {
				continue // the title is above the pictures, too
			}
			if !near(img.At(x, y), color.White) {
				t.Fatalf("a text is drawn beyond its width at %d, %d", x, y)
			}
		}
	}
}

func TestSheetMarksUnreadablePictures(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	r := reporttest.Result(t, "hdr", "ddiff", strings.Repeat("long name ", 20), 0)
	reporttest.Illustrate(t, store, &r, 1)
	delete(store.Files, item.Key(r.Item.ID, item.FileTruth))
	store.Files[item.Key(r.Item.ID, item.FileRestored)] = []byte("not a picture")
	_, lost := sheetOf(t, store, []item.Result{r})
	if len(lost) != 2 || !errors.Is(lost[0], fs.ErrNotExist) || !strings.Contains(lost[1].Error(), "restored.png") {
		t.Errorf("lost = %v", lost)
	}
}

func TestSheetWithoutFinishedItems(t *testing.T) {
	t.Parallel()
	img, lost := sheetOf(t, reporttest.NewMemory(), []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a.png", 0, reporttest.Ended(item.OutcomeFailed, "x")),
	})
	if len(lost) != 0 || img.Bounds().Dy() != 2*margin+header {
		t.Errorf("bounds %v, lost %v", img.Bounds(), lost)
	}
}

// TestPictureOfTooManyPixels: a small file that states a large size takes no memory.
func TestPictureOfTooManyPixels(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reporttest.Must(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, 1, 1))))
	data := out.Bytes()
	binary.BigEndian.PutUint32(data[16:], 60000) // width and height in IHDR
	binary.BigEndian.PutUint32(data[20:], 60000)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	store := reporttest.NewMemory()
	store.Files[item.Key("x", item.FileRestored)] = data
	p := &place{Picture: Picture{Store: store, ID: "x", File: item.FileRestored}}
	if err := new(drawing).picture(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "60000x60000 pixels, the limit is") {
		t.Errorf("error %v, want the limit", err)
	}
}
