package raster

import (
	"encoding/binary"
	"fmt"
	"image"

	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// JPEGHeader describes how a JPEG file stores its pixels.
type JPEGHeader struct {
	// Luma is the quantisation table of luma, Chroma those of the other components. Each has 64 entries, row by row. Chroma is nil for a
	// grey file.
	Luma   []uint16
	Chroma [][]uint16
	// Across and Down are the factors between the samples of luma and of chroma. Both are 1 for a grey file.
	Across, Down int
}

// zigzag returns the places of the coefficients of a block in the order of a JPEG file: along the diagonals, alternately upwards and
// downwards.
func zigzag() (places [64]int) {
	i := 0
	for diagonal := range 15 {
		for k := range diagonal + 1 {
			row, col := diagonal-k, k // upwards
			if diagonal%2 == 1 {
				row, col = col, row
			}
			if row < 8 && col < 8 {
				places[i] = 8*row + col
				i++
			}
		}
	}
	return places
}

// IsJPEG reports whether a file begins as a JPEG file does.
func IsJPEG(data []byte) bool {
	c, err := formatOf(data)
	return err == nil && c.name == "jpeg"
}

// IsLossy reports whether a file's compression changes pixels: that of JPEG, also in TIFF, and of WebP without its lossless mode.
func IsLossy(data []byte) bool {
	switch FormatOf(data) {
	case "webp":
		return metadata.WebPBody(data, "VP8 ") != nil
	case "tiff":
		return tiff.IsJPEG(data)
	case "jpeg":
		return true
	}
	return false
}

// ReadJPEGHeader reads quantisation tables and sampling of a JPEG file. It returns [ErrFormat] for a damaged header, and for a file that does
// not store grey or YCbCr.
func ReadJPEGHeader(data []byte) (*JPEGHeader, error) {
	const (
		markerDQT, markerApp14  = 0xdb, 0xee
		firstFrame, lastFrame   = 0xc0, 0xc2 // baseline, extended, progressive
		arithmetic, progressive = 0xc9, 0xca // the frames of both with arithmetic coding
	)
	refuse := func(why string) (*JPEGHeader, error) { return nil, fmt.Errorf("jpeg: %s: %w", why, ErrFormat) }
	if !IsJPEG(data) {
		return refuse("no JPEG file")
	}
	tables, transform, jfif := map[byte][]uint16{}, -1, false
	var frame []byte
	for marker, body := range metadata.JPEGSegments(data) {
		switch {
		case marker == markerDQT:
			if !readTables(body, tables) {
				return refuse("its quantisation tables are damaged")
			}
		case marker == 0xe0 && len(body) >= 5 && string(body[:5]) == "JFIF\x00":
			jfif = true
		case marker == markerApp14 && len(body) >= 12 && string(body[:5]) == "Adobe":
			transform = int(body[11])
		case marker >= firstFrame && marker <= lastFrame && len(body) >= 6 && len(body) >= 6+3*int(body[5]):
			frame = body
		case marker == arithmetic || marker == progressive:
			return refuse("it has arithmetic coding; write it with Huffman coding, without loss, as jpegtran does")
		}
	}
	if frame == nil {
		return refuse("it has no frame header")
	}
	components := int(frame[5])
	h := &JPEGHeader{Across: 1, Down: 1}
	if components == 4 {
		return refuse("it stores CMYK, not YCbCr or grey")
	}
	if components != 1 && components != 3 {
		return refuse(fmt.Sprintf("it has %d components, 1 or 3 expected", components))
	}
	for c := range components {
		id, sampling, selector := frame[6+3*c], frame[7+3*c], frame[8+3*c]
		table, across, down := tables[selector], int(sampling>>4), int(sampling&15)
		if table == nil {
			return refuse("it lacks a quantisation table")
		}
		if across == 0 || down == 0 {
			return refuse("its frame header is damaged")
		}
		if c == 0 {
			h.Luma, h.Across, h.Down = table, across, down
			if components == 3 && !jfif && (transform == 0 || transform < 0 && id == 'R') {
				return refuse("it stores red, green and blue, not YCbCr")
			}
			continue
		}
		h.Chroma = append(h.Chroma, table)
		if down != int(frame[7+3]&15) || across != int(frame[7+3]>>4) || h.Across%across != 0 || h.Down%down != 0 {
			return refuse("its components have samples that no common factor relates")
		}
	}
	if components == 1 {
		h.Across, h.Down = 1, 1 // a single component has blocks in plain order
		return h, nil
	}
	h.Across, h.Down = h.Across/int(frame[7+3]>>4), h.Down/int(frame[7+3]&15)
	return h, nil
}

// readTables adds the tables of a segment, and reports whether it is sound.
func readTables(body []byte, tables map[byte][]uint16) bool {
	for len(body) > 0 {
		precision, selector := body[0]>>4, body[0]&15
		size := 64 * (1 + int(precision))
		if body = body[1:]; precision > 1 || len(body) < size {
			return false
		}
		table := make([]uint16, 64)
		for i, place := range zigzag() {
			v := uint16(body[min(i, size-1)])
			if precision == 1 {
				v = binary.BigEndian.Uint16(body[2*i:])
			}
			if v == 0 {
				return false
			}
			table[place] = v
		}
		tables[selector], body = table, body[size:]
	}
	return true
}

// wholeBlocks returns a decoded JPEG file with the samples of its incomplete blocks beyond the right and the lower border, which the decoder
// leaves outside the bounds, and an image of another decoder as it is.
func wholeBlocks(src image.Image) image.Image {
	switch m := src.(type) {
	case *image.YCbCr:
		if h := rowsOf(len(m.Y), m.YStride); m.Rect.Min == (image.Point{}) && m.YStride >= m.Rect.Dx() && h >= m.Rect.Dy() {
			whole := *m
			whole.Rect = image.Rect(0, 0, m.YStride, h)
			return &whole
		}
	case *image.Gray:
		if h := rowsOf(len(m.Pix), m.Stride); m.Rect.Min == (image.Point{}) && m.Stride >= m.Rect.Dx() && h >= m.Rect.Dy() {
			whole := *m
			whole.Rect = image.Rect(0, 0, m.Stride, h)
			return &whole
		}
	}
	return src
}

func rowsOf(size, stride int) int {
	if stride < 1 {
		return 0
	}
	return size / stride
}
