package tiff

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
)

// stripBytes is about the number of bytes of a strip before compression.
const stripBytes = 1 << 18

// Samples are the pixels of [Encode].
type Samples struct {
	Width, Height int
	// Channels is 1 or 3, and one more with Alpha, which is not premultiplied.
	Channels int
	Alpha    bool
	// Bits is 8 or 16 for whole numbers and 32 for floating-point numbers.
	Bits int
	// Data has the samples of all pixels, pixel by pixel, little-endian.
	Data []byte
}

// Encode returns a classic TIFF file with the compression Deflate, floating-point numbers without one: they hardly shrink. tree has further tags, and may be nil; those that describe pixels must not be among them.
func Encode(p Samples, tree *Tree) ([]byte, error) {
	row := p.Width * p.Channels * p.Bits / 8
	if p.Width < 1 || p.Height < 1 || p.Channels < 1 || p.Channels > 4 || len(p.Data) != row*p.Height {
		return nil, fmt.Errorf("encode TIFF: %d bytes do not suit %d×%d×%d samples of %d bits", len(p.Data), p.Width, p.Height, p.Channels, p.Bits)
	}
	rows := max(1, min(p.Height, stripBytes/row))
	out := []byte("II*\x00\x00\x00\x00\x00")
	var offsets, sizes []uint32
	for y := 0; y < p.Height; y += rows {
		strip := p.Data[y*row : min(y+rows, p.Height)*row]
		if p.Bits != 32 {
			var err error
			if strip, err = p.deflated(bytes.Clone(strip), row); err != nil {
				return nil, fmt.Errorf("encode TIFF: %w", err)
			}
		}
		offsets, sizes = append(offsets, uint32(len(out))), append(sizes, uint32(len(strip)))
		out = even(append(out, strip...))
	}
	return p.directory(tree, offsets, sizes, rows).append(out, 4), nil
}

// deflated compresses rows of whole numbers, which it changes.
func (p Samples) deflated(strip []byte, row int) ([]byte, error) {
	for at := 0; at < len(strip); at += row {
		p.predict(strip[at : at+row])
	}
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(strip)
	err = errors.Join(err, z.Close())
	return packed.Bytes(), err
}

// predict replaces the whole numbers of a row by their differences.
func (p Samples) predict(row []byte) {
	size := p.Bits / 8
	for i := len(row) - size; i >= p.Channels*size; i -= size {
		before := row[i-p.Channels*size:]
		switch p.Bits {
		case 8:
			row[i] -= before[0]
		case 16:
			binary.LittleEndian.PutUint16(row[i:], binary.LittleEndian.Uint16(row[i:])-binary.LittleEndian.Uint16(before))
		}
	}
}

// directory returns the tags of the file.
func (p Samples) directory(tree *Tree, offsets, sizes []uint32, rows int) *Tree {
	t := &Tree{}
	if tree != nil {
		t.Entries, t.Subs = append(t.Entries, tree.Entries...), tree.Subs
	}
	bits, formats := make([]uint16, p.Channels), make([]uint16, p.Channels)
	format, predictor, compression := uint16(whole), uint16(2), uint16(deflate)
	if p.Bits == 32 {
		format, predictor, compression = float, 1, none
	}
	for i := range p.Channels {
		bits[i], formats[i] = uint16(p.Bits), format
	}
	photometric := uint16(rgb)
	if p.Channels <= 2 {
		photometric = blackIsZero
	}
	for _, e := range []Entry{
		Long(TagWidth, uint32(p.Width)), Long(TagHeight, uint32(p.Height)), Short(tagBits, bits...), Short(tagCompression, compression),
		Short(tagPhotometric, photometric), Short(tagSamples, uint16(p.Channels)), Long(tagRowsPerStrip, uint32(rows)), Short(tagPredictor, predictor),
		Short(tagSampleFormat, formats...), Long(tagStripOffsets, offsets...), Long(tagStripSizes, sizes...), Short(TagOrientation, 1),
	} {
		t.Set(e)
	}
	if p.Alpha {
		const unassociated = 2
		t.Set(Short(tagExtraSamples, unassociated))
	}
	return t
}
