package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"

	"ddiff/internal/restore/raster/metadata"
)

// pngForm is the form of a PNG file without alpha. Its encoder is several times as fast as that of the standard library, which tries five filters for
// each row, and its files of photographs are smaller.
type pngForm struct {
	width, height int
	channels      int // 1 (grey) or 3 (RGB)
	bits          int // of a sample, 8 or 16
}

const (
	// paeth is the number of the filter in the format.
	paeth = 4
	// repetitive is the share of differences equal to the one before, from which strings of them repeat: those of grey pictures, text and drawings. In
	// others a search for strings takes longer, and finds less than a code for single bytes.
	repetitive = 0.25
	// searching is the level of compression that searches for strings: level 1 is up to 18 % larger.
	searching = 3
)

// The writers of files, of a third to a whole megabyte, which are used again.
var coders, searchers = writers(zlib.HuffmanOnly), writers(searching)

func writers(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, err := zlib.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic(err) // there is no such level
		}
		return w
	}}
}

// encode returns the file. row writes the samples of row y.
func (f pngForm) encode(row func(y int, row []byte)) ([]byte, error) {
	pixel := f.channels * f.bits / 8
	stride := pixel * f.width
	filtered := make([]byte, f.height*(stride+1))
	// The pixels to the left of a row and above the first are zeros.
	above, samples := make([]byte, pixel+stride), make([]byte, pixel+stride)
	repeats := 0
	for y := range f.height {
		row(y, samples[pixel:])
		out := filtered[y*(stride+1):][:stride+1]
		out[0] = paeth
		repeats += filterPaeth(out[1:], samples, above, pixel)
		above, samples = samples, above
	}
	pool := coders
	if float64(repeats) > repetitive*float64(len(filtered)) {
		pool = searchers
	}
	w := pool.Get().(*zlib.Writer)
	var body bytes.Buffer
	w.Reset(&body)
	_, err := w.Write(filtered)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("encode PNG: %w", err)
	}
	w.Reset(io.Discard) // it does not keep the file alive
	pool.Put(w)
	colour := byte(0)
	if f.channels == 3 {
		colour = 2
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(f.width))
	header = binary.BigEndian.AppendUint32(header, uint32(f.height))
	header = append(header, byte(f.bits), colour, 0, 0, 0)
	out := make([]byte, 0, body.Len()+64)
	out = append(out, metadata.PNGMagic...)
	out = metadata.AppendPNG(out, metadata.PNGChunk{Kind: "IHDR", Data: header})
	out = metadata.AppendPNG(out, metadata.PNGChunk{Kind: "IDAT", Data: body.Bytes()})
	return metadata.AppendPNG(out, metadata.PNGChunk{Kind: "IEND"}), nil
}

// filterPaeth writes the differences of a row and its predictions by the filter of Paeth, and returns how many are equal to the one before. The
// rows begin with a pixel of zeros.
func filterPaeth(out, row, above []byte, pixel int) (repeats int) {
	n := len(out)
	left, corner, up, here := row[:n], above[:n], above[pixel:][:n], row[pixel:][:n]
	last := byte(0)
	done, repeats := filterPaethFast(out, row, above, pixel)
	if done > 0 {
		last = out[done-1]
	}
	for i := done; i < n; i++ {
		d := here[i] - nearest(left[i], up[i], corner[i])
		same := 0
		if d == last {
			same = 1
		}
		repeats += same
		out[i], last = d, d
	}
	return repeats
}

// nearest returns the one of a, b and c that is closest to a + b − c, without branches: those of noise are not predictable.
func nearest(left, up, corner byte) byte {
	a, b, c := int(left), int(up), int(corner)
	low, high, limit := min(a, b), max(a, b), 3*c-a-b
	found := c
	if high <= limit {
		found = low
	}
	if low >= limit {
		found = high
	}
	return byte(found)
}
