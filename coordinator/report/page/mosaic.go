package page

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/sheet"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/coordinator/report/table"
	"ddiff/manifest"
)

// The mosaic has a row for each task, up to maxMosaicTasks, with up to mosaicItems items.
const (
	maxMosaicTasks = 12
	mosaicItems    = 3
)

// The geometry of the mosaic, in pixels: a page's width at 300 dots per inch.
const (
	mosaicCell    = 208
	mosaicGap     = 6  // between the pictures of an item
	mosaicSpace   = 28 // between items
	mosaicMargin  = 12
	mosaicLabel   = 214 // left of the pictures
	mosaicHeader  = 38
	mosaicCaption = 40 // below the pictures
	mosaicText    = 24
	mosaicSmall   = 20
)

// Mosaic is the stored mosaic.
type Mosaic struct {
	Key           string
	Width, Height int
	// Rule states the selection of the items.
	Rule string
	// More is the number of tasks without a row.
	More int
}

// mosaicRow has the items of one task by their row in the listing, the lowest PSNR first.
type mosaicRow struct {
	label string
	items []int
}

// mosaicRows selects the items: of each task the first row of the table, and the first run of each image. The items are
// sorted by PSNR, without a truth by residual, and divided into thirds; the middle one of each third is selected.
func mosaicRows(l *Listing) []mosaicRow {
	var rows []mosaicRow
	cell := make(map[string]int) // of a task
	at := make(map[string]int)
	for row := range l.ID {
		task := l.Cells[l.Cell[row]].Task
		first, known := cell[task]
		if !known {
			first = l.Cell[row]
			cell[task], at[task] = first, len(rows)
			rows = append(rows, mosaicRow{label: l.Cells[first].Label})
		}
		r := &rows[at[task]]
		again := len(r.items) > 0 && l.Name[r.items[len(r.items)-1]] == l.Name[row]
		if l.Cell[row] == first && !again {
			r.items = append(r.items, row)
		}
	}
	for i := range rows {
		all := rows[i].items
		slices.SortStableFunc(all, func(a, b int) int {
			if statistic.Defined(l.PSNR[a]) || statistic.Defined(l.PSNR[b]) {
				return compareDefined(l.PSNR[a], l.PSNR[b])
			}
			return cmp.Or(compareDefined(-l.Residual[a], -l.Residual[b]), cmp.Compare(a, b))
		})
		n := min(len(all), mosaicItems)
		chosen := make([]int, n)
		for k := range chosen {
			chosen[k] = all[(2*k+1)*len(all)/(2*n)]
		}
		rows[i].items = chosen
	}
	return rows
}

// mosaic draws pictures and text.
type mosaic struct {
	canvas      *image.RGBA
	list        *Listing
	columns     []sheet.Column
	text, small font.Face
}

// WriteMosaic draws and stores the mosaic of all tasks. It returns nil without finished items. lost has an error for each
// listed picture that could not be read.
func WriteMosaic(ctx context.Context, store result.Files, l *Listing) (file *Mosaic, lost []error, err error) {
	rows := mosaicRows(l)
	if len(rows) == 0 {
		return nil, nil, nil
	}
	more := max(0, len(rows)-maxMosaicTasks)
	rows = rows[:len(rows)-more]
	m, err := newMosaic(l, rows)
	if err != nil {
		return nil, nil, err
	}
	for i, r := range rows {
		missing, err := m.row(ctx, store, i, r)
		if err != nil {
			return nil, nil, err
		}
		lost = append(lost, missing...)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m.canvas); err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", KeyMosaic, err)
	}
	size := m.canvas.Bounds().Size()
	file = &Mosaic{Key: KeyMosaic, Width: size.X, Height: size.Y, More: more, Rule: mosaicRule(l, rows)}
	return file, lost, result.Put(ctx, store, KeyMosaic, out.Bytes())
}

// mosaicRule states the selection.
func mosaicRule(l *Listing, rows []mosaicRow) string {
	rule := fmt.Sprintf("Each row is one task. Its images are sorted by PSNR and divided into thirds; the middle image of each third"+
		" is shown (with up to %d images: all).", mosaicItems)
	several := func(row int) bool {
		return slices.ContainsFunc(l.Cells, func(c cellView) bool {
			first := l.Cells[l.Cell[row]]
			return c.Task == first.Task && c != first
		})
	}
	if slices.ContainsFunc(rows, func(r mosaicRow) bool { return several(r.items[0]) }) {
		rule += " Tasks with several rows in the table show their first row."
	}
	if slices.ContainsFunc(l.Run, func(run int) bool { return run > 0 }) {
		rule += " Of several runs the first is shown."
	}
	return rule + " Numbers are the PSNR in dB of measurement and restoration."
}

func newMosaic(l *Listing, rows []mosaicRow) (*mosaic, error) {
	m := &mosaic{list: l}
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("parse font: %w", err)
	}
	for face, size := range map[*font.Face]float64{&m.text: mosaicText, &m.small: mosaicSmall} {
		if *face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull}); err != nil {
			return nil, fmt.Errorf("scale font: %w", err)
		}
	}
	m.columns = []sheet.Column{{File: manifest.FileMeasurement, Title: "measurement"}, {File: manifest.FileRestored, Title: "restored"}}
	wide := 0
	truth := false
	for _, r := range rows {
		wide = max(wide, len(r.items))
		truth = truth || slices.ContainsFunc(r.items, func(row int) bool { return m.has(row, manifest.FileTruth) })
	}
	if truth {
		m.columns = append(m.columns, sheet.Column{File: manifest.FileTruth, Title: "truth"})
	}
	width := 2*mosaicMargin + mosaicLabel + wide*m.itemWidth() + (wide-1)*mosaicSpace
	height := 2*mosaicMargin + mosaicHeader + len(rows)*(mosaicCell+mosaicCaption)
	m.canvas = image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m.canvas, m.canvas.Bounds(), image.NewUniform(sheet.Paper), image.Point{}, draw.Src)
	for item := range wide {
		for c, column := range m.columns {
			at := m.cell(0, item, c)
			m.write(m.small, at.Min.X, at.Min.Y-12, mosaicCell, column.Title, sheet.Muted, true)
		}
	}
	return m, nil
}

// has reports whether the item of a row of the listing has a file.
func (m *mosaic) has(row int, file string) bool {
	return m.list.Pictures[row]&(1<<slices.Index(pageFiles[:], file)) != 0
}

func (m *mosaic) itemWidth() int { return len(m.columns)*(mosaicCell+mosaicGap) - mosaicGap }

// cell is the place of a picture.
func (m *mosaic) cell(row, item, column int) image.Rectangle {
	x := mosaicMargin + mosaicLabel + item*(m.itemWidth()+mosaicSpace) + column*(mosaicCell+mosaicGap)
	y := mosaicMargin + mosaicHeader + row*(mosaicCell+mosaicCaption)
	return image.Rect(x, y, x+mosaicCell, y+mosaicCell)
}

// row draws the items of one task. The only errors besides lost are cancellations.
func (m *mosaic) row(ctx context.Context, store result.Files, at int, r mosaicRow) (lost []error, err error) {
	y := m.cell(at, 0, 0).Min.Y + mosaicText
	for _, line := range m.wrap(r.label, mosaicLabel-16) {
		m.write(m.text, mosaicMargin, y, mosaicLabel-16, line, sheet.Ink, false)
		y += mosaicText + 6
	}
	for k, row := range r.items {
		for c, column := range m.columns {
			cell := m.cell(at, k, c)
			img, err := image.Image(nil), error(nil)
			if m.has(row, column.File) {
				img, err = sheet.Picture(ctx, store, m.list.ID[row], column.File)
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("draw %s: %w", KeyMosaic, ctx.Err())
			}
			if err != nil {
				lost = append(lost, err)
			}
			if img == nil {
				draw.Draw(m.canvas, cell, image.NewUniform(sheet.Blank), image.Point{}, draw.Src)
				continue
			}
			sheet.Fit(m.canvas, cell, img)
			score := map[string]float64{manifest.FileMeasurement: m.list.Baseline[row], manifest.FileRestored: m.list.PSNR[row]}
			if v, ok := score[column.File]; ok && statistic.Defined(v) {
				m.write(m.small, cell.Min.X, cell.Max.Y+mosaicSmall, mosaicCell, table.Decimal(v, 2), sheet.Ink, true)
			}
		}
	}
	return lost, nil
}

// wrap breaks a label into lines at spaces.
func (m *mosaic) wrap(label string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(sweep.Printable(label)) {
		if n := len(lines) - 1; n >= 0 && font.MeasureString(m.text, lines[n]+" "+word).Ceil() <= width {
			lines[n] += " " + word
		} else if len(lines) < 6 {
			lines = append(lines, word)
		}
	}
	return lines
}

// write draws one line with its baseline at y, centred or from x on, and cuts it to the width.
func (m *mosaic) write(face font.Face, x, y, width int, text string, ink color.Color, centred bool) {
	runes := []rune(sweep.Printable(text))
	for len(runes) > 1 && font.MeasureString(face, string(runes)).Ceil() > width {
		runes = append(runes[:len(runes)-2], '…')
	}
	text = string(runes)
	if centred {
		x += (width - font.MeasureString(face, text).Ceil()) / 2
	}
	d := font.Drawer{Dst: m.canvas, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(text)
}

// KeyMosaic is the key of the mosaic.
const KeyMosaic = "mosaic.png"
