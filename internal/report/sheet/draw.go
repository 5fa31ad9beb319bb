package sheet

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ddiff/internal/report/result"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// The geometry of a sheet, in pixels.
const (
	cell       = 200 // side of a picture's cell
	gap        = 6   // between the pictures of an item
	itemGap    = 28  // between items in one row
	margin     = 16
	textWidth  = 250 // left of the pictures, with a gap
	textSize   = 20
	lineHeight = 24
	titleSize  = 30
	header     = 76
	rowHeight  = cell + lineHeight + 12
)

var (
	paper = image.NewUniform(color.White)
	blank = image.NewUniform(color.RGBA{0xee, 0xf0, 0xf2, 0xff}) // the place of a missing picture
	ink   = image.NewUniform(color.RGBA{0x1c, 0x23, 0x2b, 0xff})
	muted = image.NewUniform(color.RGBA{0x66, 0x70, 0x7c, 0xff})
)

// Sheet has rows of labelled pictures. One without a title has no header.
type Sheet struct {
	Title, Subtitle string
	Rows            []Row
}

// Row has a name and further lines to the left of the pictures of its items.
type Row struct {
	Name    string
	Details []string
	Items   [][]Picture
}

// Picture is a picture of an item with a caption below it. One without a store is blank.
type Picture struct {
	Store         result.Files
	ID, File      string
	Caption, None string // None is the caption of a blank one
}

// drawing is a sheet in work.
type drawing struct {
	canvas      *image.RGBA
	text, title font.Face
}

// Write draws a sheet and stores it as PNG. lost has an error for each picture that could not be read.
func (s *Sheet) Write(ctx context.Context, to result.Files, key string) (size image.Point, lost []error, err error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return size, nil, fmt.Errorf("parse font: %w", err)
	}
	d := &drawing{}
	for face, size := range map[*font.Face]float64{&d.text: textSize, &d.title: titleSize} {
		if *face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull}); err != nil {
			return image.Point{}, nil, fmt.Errorf("scale font: %w", err)
		}
	}
	top := margin
	if s.Title != "" {
		top += header
	}
	size = image.Pt(margin+textWidth+2*(cell+gap)+margin, top+len(s.Rows)*rowHeight+margin)
	for _, r := range s.Rows {
		x := 0
		for _, item := range r.Items {
			x += len(item)*(cell+gap) + itemGap
		}
		size.X = max(size.X, margin+textWidth+x-itemGap+margin)
	}
	d.canvas = image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(d.canvas, d.canvas.Bounds(), paper, image.Point{}, draw.Src)
	if s.Title != "" {
		d.write(d.title, margin, margin+titleSize, size.X-2*margin, s.Title, ink)
		d.write(d.text, margin, margin+titleSize+lineHeight, size.X-2*margin, s.Subtitle, muted)
	}
	var places []*place
	for i, r := range s.Rows {
		places = append(places, d.row(top+i*rowHeight, r)...)
	}
	if lost, err = d.draw(ctx, places); err != nil {
		return size, nil, fmt.Errorf("draw %s: %w", key, err)
	}
	out, err := raster.EncodeOpaque(d.canvas)
	if err != nil {
		return size, nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return size, lost, result.Put(ctx, to, key, out)
}

// place is a picture at its place of the canvas.
type place struct {
	Picture
	at  image.Rectangle
	err error // of reading it
}

// row writes the texts of a row from y on, and returns the places of its pictures.
func (d *drawing) row(y int, r Row) []*place {
	line := y + textSize
	for _, text := range d.wrap(r.Name, textWidth-2*gap, 4) {
		d.write(d.text, margin, line, textWidth-2*gap, text, ink)
		line += lineHeight
	}
	for _, text := range r.Details {
		d.write(d.text, margin, line, textWidth-2*gap, text, muted)
		line += lineHeight
	}
	var places []*place
	x := margin + textWidth
	for _, item := range r.Items {
		for _, p := range item {
			places = append(places, &place{Picture: p, at: image.Rect(x, y, x+cell, y+cell)})
			x += cell + gap
		}
		x += itemGap - gap
	}
	return places
}

// readers is the number of pictures that are drawn at once.
const readers = 4

// draw draws pictures, several at once, and their captions. The only error besides lost is cancellation.
func (d *drawing) draw(ctx context.Context, places []*place) (lost []error, err error) {
	var group errgroup.Group
	group.SetLimit(readers)
	memory := semaphore.NewWeighted(raster.MaxPixels) // of pixels: large pictures wait for each other
	for _, p := range places {
		draw.Draw(d.canvas, p.at, blank, image.Point{}, draw.Src)
		if p.Store == nil {
			continue
		}
		group.Go(func() error {
			p.err = d.picture(ctx, p, memory)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, p := range places {
		caption := p.Caption
		switch {
		case p.err != nil:
			lost = append(lost, p.err)
			caption = "unreadable"
		case p.Store == nil:
			caption = p.None
		}
		indent := max(0, cell-font.MeasureString(d.text, caption).Ceil()) / 2
		d.write(d.text, p.at.Min.X+indent, p.at.Max.Y+textSize, cell, caption, ink)
	}
	return lost, nil
}

// picture reads the PNG file of a picture and draws it at its place.
func (d *drawing) picture(ctx context.Context, p *place, memory *semaphore.Weighted) error {
	key := item.Key(p.ID, p.File)
	data, err := p.Store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	width, height, err := raster.Probe(data)
	if err == nil && width > raster.MaxPixels/height {
		err = fmt.Errorf("%dx%d pixels, the limit is %d pixels", width, height, raster.MaxPixels)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	pixels := int64(width) * int64(height)
	if err := memory.Acquire(ctx, pixels); err != nil {
		return err
	}
	defer memory.Release(pixels)
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	draw.Draw(d.canvas, p.at, paper, image.Point{}, draw.Src)
	fit(d.canvas, p.at, img)
	return nil
}

// write writes one line with its baseline at y, and cuts it to the width.
func (d *drawing) write(face font.Face, x, y, width int, text string, colour image.Image) {
	runes := []rune(sweep.Printable(text))
	for len(runes) > 1 && font.MeasureString(face, string(runes)).Ceil() > width {
		runes = append(runes[:len(runes)-2], '…')
	}
	pen := font.Drawer{Dst: d.canvas, Src: colour, Face: face, Dot: fixed.P(x, y)}
	pen.DrawString(string(runes))
}

// wrap breaks a text into lines of the width, at spaces where it can. The last line has the rest.
func (d *drawing) wrap(text string, width, lines int) []string {
	var out []string
	rest := []rune(strings.TrimSpace(sweep.Printable(text)))
	for len(out) < lines-1 && font.MeasureString(d.text, string(rest)).Ceil() > width {
		n := 1
		for font.MeasureString(d.text, string(rest[:n+1])).Ceil() <= width {
			n++
		}
		if space := strings.LastIndexByte(string(rest[:n+1]), ' '); space > 0 {
			n = utf8.RuneCountInString(string(rest[:n+1])[:space])
		}
		out = append(out, string(rest[:n]))
		rest = []rune(strings.TrimSpace(string(rest[n:])))
	}
	return append(out, string(rest))
}

// fit fits an image into the cell and preserves its aspect ratio. It filters when it reduces, and repeats pixels when
// it enlarges.
func fit(dst draw.Image, at image.Rectangle, img image.Image) {
	size := img.Bounds().Size()
	scale := min(float64(at.Dx())/float64(size.X), float64(at.Dy())/float64(size.Y))
	w := max(1, int(math.Round(float64(size.X)*scale)))
	h := max(1, int(math.Round(float64(size.Y)*scale)))
	to := image.Rect(0, 0, w, h).Add(at.Min).Add(image.Pt((at.Dx()-w)/2, (at.Dy()-h)/2))
	var scaler draw.Scaler = draw.CatmullRom
	if scale > 1 {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(dst, to, img, img.Bounds(), draw.Over, nil)
}
