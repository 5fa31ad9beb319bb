// Package sheet draws contact sheets: one row per item, one column per picture. It owns their geometry, colours and labels, and the reading
// of pictures of items.
package sheet

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

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/table"
	"ddiff/manifest"
)

// MaxRows bounds one contact sheet; the header gives the number of omitted items.
const MaxRows = 64

// The geometry of a sheet, in pixels.
const (
	sheetCell    = 176 // side of a picture's cell
	sheetGap     = 8
	sheetMargin  = 20
	sheetHeader  = 64 // title, counts and column captions
	sheetCaption = 196
	captionWidth = sheetCaption - 2*sheetGap // of its text
)

var (
	// Paper is the background.
	Paper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	// Blank fills the place of a missing picture.
	Blank = color.RGBA{0xee, 0xf0, 0xf2, 0xff}
	// Ink is the colour of text.
	Ink = color.RGBA{0x1c, 0x23, 0x2b, 0xff}
	// Muted is the colour of details.
	Muted = color.RGBA{0x66, 0x70, 0x7c, 0xff}
)

// sheet draws a contact sheet: one row per item, one column per picture.
type sheet struct {
	canvas  *image.RGBA
	Columns []Column
}

// Column is a column of pictures: the file of an item, and its title.
type Column struct{ File, Title string }

// Write draws and stores the contact sheet of one task with the first of its finished items. The sheet of a task without finished
// items has a heading only. lost has an error for each listed picture that could not be read.
func Write(ctx context.Context, store result.Files, file File, rows []*entry.Entry, items, done int) (lost []error, err error) {
	rows = rows[:min(MaxRows, len(rows))]
	s := newSheet(rows)
	s.Header(file.Label, sheetCounts(items, done))
	for i, e := range rows {
		errs, err := s.row(ctx, store, i, e)
		if err != nil {
			return nil, err
		}
		lost = append(lost, errs...)
	}
	return lost, s.Store(ctx, store, file.Key)
}

// Store stores the picture of the sheet.
func (s *sheet) Store(ctx context.Context, to result.Files, key string) error {
	var out bytes.Buffer
	if err := png.Encode(&out, s.canvas); err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	return result.Put(ctx, to, key, out.Bytes())
}

// sheetCounts is the line below the title.
func sheetCounts(items, done int) string {
	text := strconv.Itoa(done) + " of " + strconv.Itoa(items) + " items restored"
	if more := done - MaxRows; more > 0 {
		text += fmt.Sprintf("; the first %d are shown, %d more in %s", MaxRows, more, table.KeyCSV)
	}
	return text
}

// newSheet lays out the rows. There is a truth column if any row has a truth.
func newSheet(rows []*entry.Entry) *sheet {
	s := &sheet{}
	for _, e := range rows {
		if e.Has(manifest.FileTruth) {
			s.Columns = append(s.Columns, Column{File: manifest.FileTruth, Title: "truth"})
			break
		}
	}
	s.Columns = append(s.Columns,
		Column{File: manifest.FileMeasurement, Title: "measurement"},
		Column{File: manifest.FileRestored, Title: "restored"})
	return New(len(rows), s.Columns)
}

// New returns an empty sheet.
func New(rows int, columns []Column) *sheet {
	s := &sheet{Columns: columns}
	width := 2*sheetMargin + sheetCaption + len(s.Columns)*(sheetCell+sheetGap) - sheetGap
	height := 2*sheetMargin + sheetHeader + rows*(sheetCell+sheetGap)
	s.canvas = image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(s.canvas, s.canvas.Bounds(), image.NewUniform(Paper), image.Point{}, draw.Src)
	return s
}

func (s *sheet) Header(title, counts string) {
	width := s.canvas.Bounds().Dx() - 2*sheetMargin
	drawTitle(s.canvas, sheetMargin, sheetMargin+2, width, title)
	drawLabel(s.canvas, sheetMargin, sheetMargin+32, width, counts, Muted)
	for i, c := range s.Columns {
		drawLabel(s.canvas, s.columnX(i), sheetMargin+sheetHeader-lineHeight, sheetCell, c.Title, Muted)
	}
}

func (s *sheet) columnX(i int) int {
	return sheetMargin + sheetCaption + i*(sheetCell+sheetGap)
}

// row draws item i and marks unreadable pictures, with an error for each in lost. The only other error is cancellation.
func (s *sheet) row(ctx context.Context, store result.Files, i int, e *entry.Entry) (lost []error, err error) {
	s.caption(i, e)
	for c := range s.Columns {
		missing, err := s.Cell(ctx, store, i, c, e)
		if err != nil {
			return nil, err
		}
		lost = append(lost, missing...)
	}
	return lost, nil
}

// rowTop is the upper edge of a row.
func rowTop(i int) int { return sheetMargin + sheetHeader + 4 + i*(sheetCell+sheetGap) }

// Cell draws one picture of an item in row i, or the reason for its absence. Lost has an error for a listed picture that could not be read.
func (s *sheet) Cell(ctx context.Context, store result.Files, i, c int, e *entry.Entry) (lost []error, err error) {
	column := s.Columns[c]
	at := image.Rect(0, 0, sheetCell, sheetCell).Add(image.Pt(s.columnX(c), rowTop(i)))
	if !e.Has(column.File) {
		s.blank(at, "no "+column.Title)
		return nil, nil
	}
	img, err := Picture(ctx, store, e.ID, column.File)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("draw contact sheet: %w", ctx.Err())
	}
	if err != nil {
		s.blank(at, "unreadable")
		return []error{err}, nil //nolint:nilerr // the report is incomplete, and goes on
	}
	Fit(s.canvas, at, img)
	return nil, nil
}

// Lines writes the caption of row i: the name, then details.
func (s *sheet) Lines(row int, name string, details []string) {
	s.write(s.name(row, name), Muted, details...)
}

// name writes the name in the caption of row i. It returns the top of the next line.
func (s *sheet) name(row int, name string) int {
	return s.write(rowTop(row)+2, Ink, wrapLabel(name, captionWidth, 3)...)
}

// write writes lines of a caption from the top y on. It returns the top of the next line.
func (s *sheet) write(y int, ink color.Color, lines ...string) int {
	for _, text := range lines {
		drawLabel(s.canvas, sheetMargin, y, captionWidth, text, ink)
		y += lineHeight + 2
	}
	return y
}

// caption writes the item's name and figures to the left of its pictures.
func (s *sheet) caption(row int, e *entry.Entry) {
	y := s.write(s.name(row, e.Name), Muted, fmt.Sprintf("%s, run %d", e.Method, e.Run))
	var figures []string
	m := &e.Scores
	if statistic.Defined(m.PSNR) {
		figures = append(figures, "PSNR "+change(m.Baseline, m.PSNR)+" dB")
	}
	if statistic.Defined(m.SSIM) {
		figures = append(figures, "SSIM "+table.Decimal(m.SSIM, 3))
	}
	if statistic.Defined(m.Residual) {
		figures = append(figures, "residual "+table.Decimal(m.Residual, 4))
	}
	s.write(y+lineHeight/2, Ink, figures...)
}

// change formats "before -> after", or after alone if before is undefined.
func change(before, after float64) string {
	if !statistic.Defined(before) {
		return table.Decimal(after, 2)
	}
	return table.Decimal(before, 2) + " -> " + table.Decimal(after, 2)
}

func (s *sheet) blank(cell image.Rectangle, why string) {
	draw.Draw(s.canvas, cell, image.NewUniform(Blank), image.Point{}, draw.Src)
	x := cell.Min.X + (cell.Dx()-labelWidth(why))/2
	drawLabel(s.canvas, x, cell.Min.Y+(cell.Dy()-lineHeight)/2, cell.Dx(), why, Muted)
}

// Fit fits an image into the cell and preserves its aspect ratio. It filters when it reduces, and repeats pixels when
// it enlarges.
func Fit(dst draw.Image, cell image.Rectangle, img image.Image) {
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
