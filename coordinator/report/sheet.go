package report

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strconv"

	"golang.org/x/image/draw"

	"ddiff/manifest"
)

// maxSheetRows bounds one contact sheet; the header gives the number of omitted items.
const maxSheetRows = 64

// The geometry of a sheet, in pixels.
const (
	sheetCell    = 176 // side of a picture's cell
	sheetGap     = 8
	sheetMargin  = 20
	sheetHeader  = 64 // title, counts and column captions
	sheetCaption = 196
)

var (
	sheetPaper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	sheetBlank = color.RGBA{0xee, 0xf0, 0xf2, 0xff}
	sheetInk   = color.RGBA{0x1c, 0x23, 0x2b, 0xff}
	sheetMuted = color.RGBA{0x66, 0x70, 0x7c, 0xff}
)

// sheet draws a contact sheet: one row per item, one column per picture.
type sheet struct {
	canvas  *image.RGBA
	columns []sheetColumn
}

type sheetColumn struct{ file, title string }

// writeSheet draws and stores the contact sheet of one task with the first of its finished items. The sheet of a task without finished
// items has a heading only. lost has an error for each listed picture that could not be read.
func writeSheet(ctx context.Context, store files, file sheetFile, rows []*entry, items, done int) (lost []error, err error) {
	rows = rows[:min(maxSheetRows, len(rows))]
	s := newSheet(rows)
	s.header(file.Label, sheetCounts(items, done))
	for i, e := range rows {
		errs, err := s.row(ctx, store, i, e)
		if err != nil {
			return nil, err
		}
		lost = append(lost, errs...)
	}
	return lost, s.store(ctx, store, file.Key)
}

// store stores the picture of the sheet.
func (s *sheet) store(ctx context.Context, to files, key string) error {
	var out bytes.Buffer
	if err := png.Encode(&out, s.canvas); err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	return put(ctx, to, key, out.Bytes())
}

// sheetCounts is the line below the title.
func sheetCounts(items, done int) string {
	text := strconv.Itoa(done) + " of " + strconv.Itoa(items) + " items restored"
	if more := done - maxSheetRows; more > 0 {
		text += fmt.Sprintf("; the first %d are shown, %d more in %s", maxSheetRows, more, KeyCSV)
	}
	return text
}

// newSheet lays out the rows. There is a truth column if any row has a truth.
func newSheet(rows []*entry) *sheet {
	s := &sheet{}
	for _, e := range rows {
		if e.has(manifest.FileTruth) {
			s.columns = append(s.columns, sheetColumn{manifest.FileTruth, "truth"})
			break
		}
	}
	s.columns = append(s.columns,
		sheetColumn{manifest.FileMeasurement, "measurement"},
		sheetColumn{manifest.FileRestored, "restored"})
	return newCanvas(len(rows), s.columns)
}

func newCanvas(rows int, columns []sheetColumn) *sheet {
	s := &sheet{columns: columns}
	width := 2*sheetMargin + sheetCaption + len(s.columns)*(sheetCell+sheetGap) - sheetGap
	height := 2*sheetMargin + sheetHeader + rows*(sheetCell+sheetGap)
	s.canvas = image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(s.canvas, s.canvas.Bounds(), image.NewUniform(sheetPaper), image.Point{}, draw.Src)
	return s
}

func (s *sheet) header(title, counts string) {
	width := s.canvas.Bounds().Dx() - 2*sheetMargin
	drawTitle(s.canvas, sheetMargin, sheetMargin+2, width, title)
	drawLabel(s.canvas, sheetMargin, sheetMargin+32, width, counts, sheetMuted)
	for i, c := range s.columns {
		drawLabel(s.canvas, s.columnX(i), sheetMargin+sheetHeader-lineHeight, sheetCell, c.title, sheetMuted)
	}
}

func (s *sheet) columnX(i int) int {
	return sheetMargin + sheetCaption + i*(sheetCell+sheetGap)
}

// row draws item i and marks unreadable pictures, with an error for each in lost. The only other error is cancellation.
func (s *sheet) row(ctx context.Context, store files, i int, e *entry) (lost []error, err error) {
	s.caption(rowTop(i), e)
	for c := range s.columns {
		missing, err := s.cell(ctx, store, i, c, e)
		if err != nil {
			return nil, err
		}
		lost = append(lost, missing...)
	}
	return lost, nil
}

// rowTop is the upper edge of a row.
func rowTop(i int) int { return sheetMargin + sheetHeader + 4 + i*(sheetCell+sheetGap) }

// cell draws one picture of an item in row i, or the reason for its absence. Lost has an error for a listed picture that could not be read.
func (s *sheet) cell(ctx context.Context, store files, i, c int, e *entry) (lost []error, err error) {
	column := s.columns[c]
	at := image.Rect(0, 0, sheetCell, sheetCell).Add(image.Pt(s.columnX(c), rowTop(i)))
	if !e.has(column.file) {
		s.blank(at, "no "+column.title)
		return nil, nil
	}
	img, err := picture(ctx, store, e.ID, column.file)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("draw contact sheet: %w", ctx.Err())
	}
	if err != nil {
		s.blank(at, "unreadable")
		return []error{err}, nil //nolint:nilerr // the report is incomplete, and goes on
	}
	fitPicture(s.canvas, at, img)
	return nil, nil
}

// lines writes the caption of row i: the name, then details.
func (s *sheet) lines(row int, name string, details []string) {
	y := rowTop(row) + 2
	names := wrapLabel(name, sheetCaption-2*sheetGap, 3)
	for i, text := range append(names, details...) {
		ink := sheetInk
		if i >= len(names) {
			ink = sheetMuted
		}
		drawLabel(s.canvas, sheetMargin, y, sheetCaption-2*sheetGap, text, ink)
		y += lineHeight + 2
	}
}

// caption writes the item's name and figures to the left of its pictures.
func (s *sheet) caption(top int, e *entry) {
	y := top + 2
	const width = sheetCaption - 2*sheetGap
	line := func(text string, ink color.Color) {
		drawLabel(s.canvas, sheetMargin, y, width, text, ink)
		y += lineHeight + 2
	}
	for _, text := range wrapLabel(e.Name, width, 3) {
		line(text, sheetInk)
	}
	line(fmt.Sprintf("%s, run %d", e.Method, e.Run), sheetMuted)
	y += lineHeight / 2
	m := &e.Scores
	if defined(m.PSNR) {
		line("PSNR "+change(m.Baseline, m.PSNR)+" dB", sheetInk)
	}
	if defined(m.SSIM) {
		line("SSIM "+decimal(m.SSIM, 3), sheetInk)
	}
	if defined(m.Residual) {
		line("residual "+decimal(m.Residual, 4), sheetInk)
	}
}

// change formats "before -> after", or after alone if before is undefined.
func change(before, after float64) string {
	if !defined(before) {
		return decimal(after, 2)
	}
	return decimal(before, 2) + " -> " + decimal(after, 2)
}

func (s *sheet) blank(cell image.Rectangle, why string) {
	draw.Draw(s.canvas, cell, image.NewUniform(sheetBlank), image.Point{}, draw.Src)
	x := cell.Min.X + (cell.Dx()-labelWidth(why))/2
	drawLabel(s.canvas, x, cell.Min.Y+(cell.Dy()-lineHeight)/2, cell.Dx(), why, sheetMuted)
}

// fitPicture fits an image into the cell and preserves its aspect ratio. It filters when it reduces, and repeats pixels when
// it enlarges.
func fitPicture(dst draw.Image, cell image.Rectangle, img image.Image) {
	size := img.Bounds().Size()
	scale := min(float64(cell.Dx())/float64(size.X), float64(cell.Dy())/float64(size.Y))
	w := max(1, int(math.Round(float64(size.X)*scale)))
	h := max(1, int(math.Round(float64(size.Y)*scale)))
	at := image.Rect(0, 0, w, h).Add(cell.Min).Add(image.Pt((cell.Dx()-w)/2, (cell.Dy()-h)/2))
	var scaler draw.Scaler = draw.CatmullRom
	if scale > 1 {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(dst, at, img, img.Bounds(), draw.Over, nil)
}
