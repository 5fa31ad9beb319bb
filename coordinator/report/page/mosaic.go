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

// The mosaic has a row for each task, up to maxMosaicTasks. A row has up to mosaicPictures pictures: of each item the measurement, one
// restoration for each approach, up to maxMosaicApproaches, and the truth.
const (
	maxMosaicTasks      = 12
	mosaicPictures      = 9
	maxMosaicApproaches = mosaicPictures - 2
)

// The geometry of the mosaic, in pixels: a page's width at 300 dots per inch.
const (
	mosaicCell    = 208
	mosaicGap     = 6  // between the pictures of an item
	mosaicSpace   = 28 // between items
	mosaicMargin  = 12
	mosaicLabel   = 214 // left of the pictures
	mosaicCaption = 40  // below the pictures
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

// mosaicRow has the items of one task, the lowest PSNR first.
type mosaicRow struct {
	label string
	// items has for each item its rows of the listing, one for each approach, -1 for none. The first approach has one.
	items [][]int
	// approaches are cells of the listing.
	approaches []int
}

// mosaicRows selects the items: of each task the first row of the table, and the first run of each image. The items are
// sorted by PSNR, without a truth by residual, and divided into equal parts; the middle one of each part is selected, with the
// restorations of its measurement by the other rows of the table.
func mosaicRows(l *Listing) []mosaicRow {
	var rows []mosaicRow
	first := make(map[string]int) // by task, the row of the mosaic
	of := make(map[int]int)       // by measurement, the row of the mosaic
	candidates := [][]int{}
	for row := range l.ID {
		task := l.Cells[l.Cell[row]].Task
		at, known := first[task]
		if !known {
			at = len(rows)
			first[task] = at
			rows, candidates = append(rows, mosaicRow{label: l.Cells[l.Cell[row]].Label, approaches: []int{l.Cell[row]}}), append(candidates, nil)
		}
		all := candidates[at]
		again := len(all) > 0 && l.Name[all[len(all)-1]] == l.Name[row]
		if l.Cell[row] == rows[at].approaches[0] && !again {
			candidates[at] = append(all, row)
			of[l.Measurement[row]] = at
		}
	}
	type restoration struct{ measurement, cell int }
	restored := make(map[restoration]int) // the first run
	for row := range l.ID {
		at, known := of[l.Measurement[row]]
		if !known {
			continue
		}
		key := restoration{l.Measurement[row], l.Cell[row]}
		if _, again := restored[key]; !again {
			restored[key] = row
		}
		if r := &rows[at]; !slices.Contains(r.approaches, l.Cell[row]) && len(r.approaches) < maxMosaicApproaches {
			r.approaches = append(r.approaches, l.Cell[row])
		}
	}
	for i, all := range candidates {
		r := &rows[i]
		slices.SortStableFunc(all, func(a, b int) int {
			if statistic.Defined(l.PSNR[a]) || statistic.Defined(l.PSNR[b]) {
				return compareDefined(l.PSNR[a], l.PSNR[b])
			}
			return cmp.Or(compareDefined(-l.Residual[a], -l.Residual[b]), cmp.Compare(a, b))
		})
		n := min(len(all), mosaicPictures/(len(r.approaches)+2))
		for k := range n {
			row := all[(2*k+1)*len(all)/(2*n)]
			item := []int{row}
			for _, c := range r.approaches[1:] {
				other, known := restored[restoration{l.Measurement[row], c}]
				if !known {
					other = -1
				}
				item = append(item, other)
			}
			r.items = append(r.items, item)
		}
	}
	return rows
}

// mosaic draws pictures and text.
type mosaic struct {
	canvas      *image.RGBA
	list        *Listing
	truth       bool // of any item
	text, small font.Face
}

// mosaicPicture is a picture of a row of the listing, -1 for none.
type mosaicPicture struct {
	row         int
	file, title string
}

// pictures are those of an item.
func (m *mosaic) pictures(r mosaicRow, item []int) []mosaicPicture {
	out := []mosaicPicture{{item[0], manifest.FileMeasurement, "measurement"}}
	for k, row := range item {
		c := m.list.Cells[r.approaches[k]]
		title := c.Method
		if slices.ContainsFunc(r.approaches, func(other int) bool { return other != r.approaches[k] && m.list.Cells[other].Method == c.Method }) {
			title += " " + c.Variant
		}
		if len(item) == 1 {
			title = "restored"
		}
		out = append(out, mosaicPicture{row, manifest.FileRestored, title})
	}
	if m.truth {
		out = append(out, mosaicPicture{item[0], manifest.FileTruth, "truth"})
	}
	return out
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
	rule := "Each row is one task. Its images are sorted by PSNR and divided into equal parts; the middle image of each part is shown."
	several, problems := 0, false
	for _, r := range rows {
		several = max(several, len(r.approaches))
		problems = problems || slices.ContainsFunc(l.Cells, func(c cellView) bool {
			return c.Task == l.Cells[r.approaches[0]].Task && !slices.ContainsFunc(r.approaches, func(a int) bool { return l.Cells[a] == c })
		})
	}
	if several > 1 {
		rule += " The methods and settings of a task are side by side; the PSNR of the first sorts the images."
	}
	if problems {
		rule += fmt.Sprintf(" Rows of the table with other parameters, noise levels or sizes than a task's first row, and beyond %d, are not shown.", maxMosaicApproaches)
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
	for _, r := range rows {
		m.truth = m.truth || slices.ContainsFunc(r.items, func(item []int) bool { return m.has(item[0], manifest.FileTruth) })
	}
	width := 0
	for _, r := range rows {
		last := len(r.items) - 1
		width = max(width, m.cell(0, last, len(m.pictures(r, r.items[last])), len(m.pictures(r, r.items[last]))-1).Max.X+mosaicMargin)
	}
	m.canvas = image.NewRGBA(image.Rect(0, 0, width, 2*mosaicMargin+len(rows)*(mosaicCell+mosaicCaption)))
	draw.Draw(m.canvas, m.canvas.Bounds(), image.NewUniform(sheet.Paper), image.Point{}, draw.Src)
	return m, nil
}

// has reports whether the item of a row of the listing has a file.
func (m *mosaic) has(row int, file string) bool {
	return row >= 0 && m.list.Pictures[row]&(1<<slices.Index(pageFiles[:], file)) != 0
}

// cell is the place of a picture of an item that has the given number of pictures.
func (m *mosaic) cell(row, item, pictures, column int) image.Rectangle {
	x := mosaicMargin + mosaicLabel + item*(pictures*(mosaicCell+mosaicGap)-mosaicGap+mosaicSpace) + column*(mosaicCell+mosaicGap)
	y := mosaicMargin + row*(mosaicCell+mosaicCaption)
	return image.Rect(x, y, x+mosaicCell, y+mosaicCell)
}

// row draws the items of one task. The only errors besides lost are cancellations.
func (m *mosaic) row(ctx context.Context, store result.Files, at int, r mosaicRow) (lost []error, err error) {
	y := m.cell(at, 0, 1, 0).Min.Y + mosaicText
	for _, line := range m.wrap(r.label, mosaicLabel-16) {
		m.write(m.text, mosaicMargin, y, mosaicLabel-16, line, sheet.Ink, false)
		y += mosaicText + 6
	}
	for k, item := range r.items {
		pictures := m.pictures(r, item)
		for c, p := range pictures {
			cell := m.cell(at, k, len(pictures), c)
			img, err := image.Image(nil), error(nil)
			if m.has(p.row, p.file) {
				img, err = sheet.Picture(ctx, store, m.list.ID[p.row], p.file)
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("draw %s: %w", KeyMosaic, ctx.Err())
			}
			if err != nil {
				lost = append(lost, err)
			}
			caption := p.title
			if img == nil {
				draw.Draw(m.canvas, cell, image.NewUniform(sheet.Blank), image.Point{}, draw.Src)
			} else {
				sheet.Fit(m.canvas, cell, img)
				score := map[string]column{manifest.FileMeasurement: m.list.Baseline, manifest.FileRestored: m.list.PSNR}
				if v, ok := score[p.file]; ok && statistic.Defined(v[p.row]) {
					caption = table.Decimal(v[p.row], 2) + " " + caption
				}
			}
			m.write(m.small, cell.Min.X, cell.Max.Y+mosaicSmall, mosaicCell, caption, sheet.Ink, true)
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
