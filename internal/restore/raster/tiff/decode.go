package tiff

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	xtiff "golang.org/x/image/tiff"
	"golang.org/x/image/tiff/lzw"
)

// Values of tags.
const (
	none, oldLZW, fax3, fax4, lzwCoding, oldJPEG, jpegCoding, deflate, packBits, oldDeflate, zstdCoding = 1, 2, 3, 4, 5, 6, 7, 8, 32773, 32946, 50000

	whiteIsZero, blackIsZero, rgb, palette, cmyk, ycbcr = 0, 1, 2, 3, 5, 6

	whole, float = 1, 3 // sample formats
)

// maxSamples is the largest number of samples of a pixel.
const maxSamples = 8

// layout is how a file stores its pixels.
type layout struct {
	width, height, samples, bits          int
	compression, photometric, format      uint64
	predictor                             uint64
	planar                                bool
	alpha                                 int // index of the sample, -1 without one
	premultiplied                         bool
	blockWidth, blockHeight, across, down int
	tiled                                 bool
	offsets, sizes                        []uint64
	tables                                []byte
	order                                 binary.ByteOrder
	foreign                               bool // for golang.org/x/image/tiff
}

// Float is a picture of floating-point samples. As an [image.Image] its values are clamped to [0, 1].
type Float struct {
	Width, Height int
	// Planes are those of red, green and blue, or of grey alone. Black is 0 and white is 1, apart from values beyond them.
	Planes [][]float32
	// Alpha is from 0 to 1; nil: opaque.
	Alpha []float32
	// Bits is the number of bits of a sample.
	Bits int
}

// ColorModel is that of 16 bits.
func (*Float) ColorModel() color.Model { return color.NRGBA64Model }

// Bounds is the size.
func (f *Float) Bounds() image.Rectangle { return image.Rect(0, 0, f.Width, f.Height) }

// At returns a pixel, clamped and rounded to 16 bits.
func (f *Float) At(x, y int) color.Color {
	at := y*f.Width + x
	level := func(v float32) uint16 { return uint16(math.Round(65535 * float64(min(1, max(0, v))))) }
	last := len(f.Planes) - 1
	c := color.NRGBA64{level(f.Planes[0][at]), level(f.Planes[min(1, last)][at]), level(f.Planes[last][at]), 0xffff}
	if f.Alpha != nil {
		c.A = level(f.Alpha[at])
	}
	return c
}

// Opaque reports whether the picture has no transparent pixel.
func (f *Float) Opaque() bool {
	for _, v := range f.Alpha {
		if v < 1 {
			return false
		}
	}
	return true
}

// DecodeConfig reads the size of a file.
func DecodeConfig(r io.Reader) (image.Config, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return image.Config{}, err
	}
	l, err := readLayout(data)
	if err != nil {
		return image.Config{}, err
	}
	return image.Config{Width: l.width, Height: l.height}, nil
}

// Decode reads a file: an [*image.Gray], [*image.Gray16], [*image.NRGBA], [*image.NRGBA64], [*image.RGBA], [*image.RGBA64], [*image.CMYK], [*Float], or what
// golang.org/x/image/tiff returns.
func Decode(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	l, err := readLayout(data)
	if err != nil {
		return nil, err
	}
	if l.foreign {
		return xtiff.Decode(bytes.NewReader(data))
	}
	return l.decode(data)
}

// readLayout reads and checks the tags.
func readLayout(data []byte) (*layout, error) {
	d, err := First(data)
	if err != nil {
		return nil, err
	}
	if reason := rawReason(data, d); reason != "" {
		return nil, damaged("%s", reason)
	}
	number := func(tag uint16, other uint64) int { return int(min(d.or(tag, other), math.MaxInt32)) }
	l := &layout{
		order: d.Order, width: number(TagWidth, 0), height: number(TagHeight, 0), samples: number(tagSamples, 1), bits: number(tagBits, 1),
		compression: d.or(tagCompression, none), photometric: d.or(tagPhotometric, blackIsZero), format: d.or(tagSampleFormat, whole),
		predictor: d.or(tagPredictor, 1), planar: d.or(tagPlanar, 1) == 2, alpha: -1,
	}
	if l.width < 1 || l.height < 1 {
		return nil, damaged("the header has the size %dx%d pixels", l.width, l.height)
	}
	for _, b := range d.numbers(tagBits) {
		if b != uint64(l.bits) {
			return nil, damaged("its samples have different numbers of bits")
		}
	}
	for _, f := range d.numbers(tagSampleFormat) {
		if f != l.format {
			return nil, damaged("its samples have different formats")
		}
	}
	if l.planar = l.planar && l.samples > 1; l.bits < 8 || l.photometric == palette || l.compression == fax3 || l.compression == fax4 || l.compression == oldLZW {
		err := l.leave(d)
		return l, err
	}
	if err := l.check(d); err != nil {
		return nil, err
	}
	err = l.place(d, len(data))
	return l, err
}

// leave checks a file for golang.org/x/image/tiff, and marks it.
func (l *layout) leave(d *Directory) error {
	const huffman, group4 = 2, 4
	switch {
	case d.big:
		return damaged("it is a BigTIFF with fewer than 8 bits or a palette; save it with 8 bits")
	case l.planar:
		return damaged("the channels are in separate planes of fewer than 8 bits; save it with interleaved channels")
	case l.compression >= huffman && l.compression <= group4 && l.photometric == blackIsZero: // the decoder exchanges black and white
		return damaged("it has the compression of fax; save it with another one, such as LZW")
	}
	l.foreign = true
	return nil
}

// rawReason returns why the file is the unprocessed picture of a camera, or "".
func rawReason(data []byte, d *Directory) string {
	const reduced = 1
	raw := len(data) > 10 && string(data[8:10]) == "CR" || d.Find(tagDNGVersion) != nil || d.or(tagSubfileType, 0)&reduced != 0 && d.Find(tagSubdirectories) != nil
	if !raw {
		return ""
	}
	return "it is a raw file of a camera; develop it first, as with: darktable-cli photo.raw photo.tif"
}

// check refuses pixels that this package does not read.
func (l *layout) check(d *Directory) error {
	if l.samples < 1 || l.samples > maxSamples {
		return damaged("a pixel has %d samples, at most %d are read", l.samples, maxSamples)
	}
	colours := 1
	switch l.photometric {
	case whiteIsZero, blackIsZero:
	case rgb:
		colours = 3
	case cmyk:
		colours = 4
	case ycbcr:
		if l.compression != jpegCoding {
			return damaged("it stores YCbCr without JPEG; save it as RGB")
		}
		colours = 3
	default:
		return damaged("it has the colour space %d; save it as RGB", l.photometric)
	}
	if l.samples < colours {
		return damaged("a pixel has %d samples, its colours need %d", l.samples, colours)
	}
	switch {
	case l.format == whole && (l.bits == 8 || l.bits == 16 || l.bits == 32):
	case l.format == float && (l.bits == 16 || l.bits == 32 || l.bits == 64):
	case l.format == float:
		return damaged("its floating-point samples have %d bits; save them with 32", l.bits)
	case l.format == whole || l.format == 4:
		return damaged("its samples have %d bits; save them with 8 or 16", l.bits)
	default:
		return damaged("its samples have signs; save them as unsigned or floating-point numbers")
	}
	if l.photometric == cmyk && (l.bits > 16 || l.format == float) {
		return damaged("it has CMYK of %d bits; save it with 8", l.bits)
	}
	switch l.compression {
	case none, lzwCoding, deflate, oldDeflate, packBits, zstdCoding:
	case jpegCoding:
		if l.bits != 8 || l.format != whole {
			return damaged("it has JPEG of %d bits; save it with LZW", l.bits)
		}
		l.predictor = 1
	case oldJPEG:
		return damaged("it has JPEG in the old form; save it with LZW")
	default:
		return damaged("it has the compression %d; save it with LZW or Deflate", l.compression)
	}
	if l.predictor < 1 || l.predictor > 3 || l.predictor == 3 && l.format != float || l.predictor == 2 && l.format == float {
		return damaged("it has the predictor %d, which does not suit its samples", l.predictor)
	}
	for i, kind := range d.numbers(tagExtraSamples) {
		if (kind == 1 || kind == 2) && colours+i < l.samples && l.photometric != cmyk {
			l.alpha, l.premultiplied = colours+i, kind == 1
			break
		}
	}
	return nil
}

// place finds the strips or tiles.
func (l *layout) place(d *Directory, size int) error {
	l.blockWidth, l.blockHeight = l.width, int(min(d.or(tagRowsPerStrip, math.MaxInt32), uint64(l.height)))
	offsets, sizes := uint16(tagStripOffsets), uint16(tagStripSizes)
	if d.Find(tagTileWidth) != nil {
		const most = 4096 // beyond the picture
		w, h := d.or(tagTileWidth, 0), d.or(tagTileHeight, 0)
		if w < 1 || h < 1 || w > max(most, uint64(l.width)) || h > max(most, uint64(l.height)) {
			return damaged("its tiles have %dx%d pixels", w, h)
		}
		l.blockWidth, l.blockHeight, l.tiled = int(w), int(h), true
		offsets, sizes = tagTileOffsets, tagTileSizes
	}
	if l.blockHeight < 1 {
		return damaged("its strips have no rows")
	}
	l.across, l.down = (l.width+l.blockWidth-1)/l.blockWidth, (l.height+l.blockHeight-1)/l.blockHeight
	n := l.across * l.down
	if l.planar {
		n *= l.samples
	}
	l.offsets, l.sizes = d.numbers(offsets), d.numbers(sizes)
	if len(l.sizes) == 0 && len(l.offsets) == 1 && l.compression == none { // some programs leave it out
		l.sizes = []uint64{uint64(size)}
	}
	if len(l.offsets) < n || len(l.sizes) < n {
		return damaged("it has %d of %d strips or tiles", min(len(l.offsets), len(l.sizes)), n)
	}
	if e := d.Find(tagJPEGTables); e != nil {
		l.tables = e.Data
	}
	return nil
}

// decode reads the pixels.
func (l *layout) decode(data []byte) (image.Image, error) {
	out := l.canvas()
	planes := 1
	if l.planar {
		planes = l.samples
	}
	block := 0
	for plane := range planes {
		for row := range l.down {
			for col := range l.across {
				from, size := l.offsets[block], l.sizes[block]
				block++
				if from > uint64(len(data)) {
					return nil, io.ErrUnexpectedEOF
				}
				part := data[from:min(uint64(len(data)), from+min(size, uint64(len(data))))]
				area := image.Rect(col*l.blockWidth, row*l.blockHeight, (col+1)*l.blockWidth, (row+1)*l.blockHeight)
				if !l.tiled {
					area.Max.Y = min(area.Max.Y, l.height)
				}
				if err := l.decodeBlock(part, area, plane, out); err != nil {
					return nil, err
				}
			}
		}
	}
	return out.finish(), nil
}

// decodeBlock reads a strip or tile. Its area may reach beyond the picture.
func (l *layout) decodeBlock(part []byte, area image.Rectangle, plane int, out *canvas) error {
	samples := l.samples
	if l.planar {
		samples = 1
	}
	if l.compression == jpegCoding {
		return l.decodeJPEG(part, area, plane, samples, out)
	}
	line := make([]byte, area.Dx()*samples*l.bits/8)
	r, end, err := l.expand(part)
	if err != nil {
		return err
	}
	defer end()
	for y := area.Min.Y; y < min(area.Max.Y, l.height); y++ {
		if _, err := io.ReadFull(r, line); err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		l.unpredict(line, samples)
		for i := range area.Dx() * samples {
			x := area.Min.X + i/samples
			if x >= l.width {
				break
			}
			out.set(y*l.width+x, plane+i%samples, l.value(line, i))
		}
	}
	return nil
}

// expand returns a reader that undoes the compression, and a function that ends it.
func (l *layout) expand(part []byte) (r io.Reader, end func(), err error) {
	r, end = bytes.NewReader(part), func() {}
	switch l.compression {
	case lzwCoding:
		z := lzw.NewReader(r, lzw.MSB, 8)
		return z, func() { _ = z.Close() }, nil
	case deflate, oldDeflate:
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil
	case zstdCoding:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(1<<28))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case packBits:
		r = &unpacker{part: part}
	}
	return r, end, nil
}

// unpacker undoes PackBits: a byte n below 128 precedes n+1 bytes, one above 128 a byte that occurs 257-n times.
type unpacker struct{ part, ready []byte }

func (u *unpacker) Read(into []byte) (int, error) {
	for len(u.ready) == 0 {
		if len(u.part) < 2 {
			return 0, io.ErrUnexpectedEOF
		}
		n := int(u.part[0])
		switch u.part = u.part[1:]; {
		case n < 128:
			if len(u.part) < n+1 {
				return 0, io.ErrUnexpectedEOF
			}
			u.ready, u.part = u.part[:n+1], u.part[n+1:]
		case n > 128:
			u.ready, u.part = bytes.Repeat(u.part[:1], 257-n), u.part[1:]
		}
	}
	n := copy(into, u.ready)
	u.ready = u.ready[n:]
	return n, nil
}

// unpredict undoes the differences along a row.
func (l *layout) unpredict(line []byte, samples int) {
	size := l.bits / 8
	switch l.predictor {
	case 2:
		for i := samples * size; i+size <= len(line); i += size {
			before := line[i-samples*size:]
			switch size {
			case 1:
				line[i] += before[0]
			case 2:
				l.order.PutUint16(line[i:], l.order.Uint16(line[i:])+l.order.Uint16(before))
			default:
				l.order.PutUint32(line[i:], l.order.Uint32(line[i:])+l.order.Uint32(before))
			}
		}
	case 3: // differences of bytes; all first bytes of the samples, then all second ones
		for i := samples; i < len(line); i++ {
			line[i] += line[i-samples]
		}
		n := len(line) / size
		whole := bytes.Clone(line)
		for i := range n {
			for b := range size {
				to := i*size + b
				if l.order == binary.LittleEndian {
					to = i*size + size - 1 - b
				}
				line[to] = whole[b*n+i]
			}
		}
	}
}

// value returns sample i of a row.
func (l *layout) value(line []byte, i int) float64 {
	switch size := l.bits / 8; {
	case size == 1:
		return float64(line[i])
	case size == 2 && l.format == float:
		return half(l.order.Uint16(line[2*i:]))
	case size == 2:
		return float64(l.order.Uint16(line[2*i:]))
	case size == 4 && l.format == float:
		return float64(math.Float32frombits(l.order.Uint32(line[4*i:])))
	case size == 4:
		return float64(l.order.Uint32(line[4*i:]))
	default:
		return math.Float64frombits(l.order.Uint64(line[8*i:]))
	}
}

// half converts an IEEE 754 half-precision number.
func half(b uint16) float64 {
	sign, exponent, fraction := 1-2*float64(b>>15), int(b>>10&0x1f), float64(b&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 0x1f:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// decodeJPEG reads a block that is a JPEG stream without its tables.
func (l *layout) decodeJPEG(part []byte, area image.Rectangle, plane, samples int, out *canvas) error {
	stream := part
	if len(l.tables) > 4 && len(part) > 2 {
		stream = append(bytes.Clone(l.tables[:len(l.tables)-2]), part[2:]...) // without the end of one and the start of the other
	}
	if l.photometric == cmyk && len(stream) > 2 { // without the mark the decoder refuses four components
		stream = slices.Concat(stream[:2], []byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"), stream[2:])
	}
	cfg, err := jpeg.DecodeConfig(bytes.NewReader(stream))
	if err != nil {
		return fmt.Errorf("its JPEG data: %w", err)
	}
	if cfg.Width > area.Dx() || cfg.Height > area.Dy()+7 {
		return damaged("a block has %dx%d pixels, its JPEG data %dx%d", area.Dx(), area.Dy(), cfg.Width, cfg.Height)
	}
	src, err := jpeg.Decode(bytes.NewReader(stream))
	if err != nil {
		return fmt.Errorf("its JPEG data: %w", err)
	}
	area = area.Intersect(image.Rect(0, 0, l.width, l.height))
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			for i, v := range l.jpegPixel(src, x-area.Min.X, y-area.Min.Y, samples) {
				out.set(y*l.width+x, plane+i, float64(v))
			}
		}
	}
	return nil
}

// jpegPixel returns the samples of a pixel in the colours of the file.
func (l *layout) jpegPixel(src image.Image, x, y, samples int) []uint8 {
	switch src := src.(type) {
	case *image.Gray:
		return []uint8{src.GrayAt(x, y).Y}[:min(1, samples)]
	case *image.CMYK:
		c := src.CMYKAt(x, y)
		return []uint8{0xff - c.C, 0xff - c.M, 0xff - c.Y, 0xff - c.K}[:min(4, samples)] // the mark stands for inverted inks
	case *image.YCbCr:
		c := src.YCbCrAt(x, y)
		if l.photometric == ycbcr {
			c.Y, c.Cb, c.Cr = color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
		}
		return []uint8{c.Y, c.Cb, c.Cr}[:min(3, samples)]
	}
	r, g, b, _ := src.At(x, y).RGBA()
	return []uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}[:min(3, samples)]
}

// Bits returns the number of bits per sample of a TIFF file, as its header states it: 32 for floating-point samples of any size. 8 for a damaged file.
func Bits(data []byte) int {
	d, err := First(data)
	switch {
	case err != nil:
		return 8
	case d.or(tagSampleFormat, whole) == float:
		return 32
	}
	return int(min(d.or(tagBits, 8), 64))
}

// IsJPEG reports whether the pixels of a TIFF file have the compression JPEG.
func IsJPEG(data []byte) bool {
	d, err := First(data)
	return err == nil && d.or(tagCompression, none) == jpegCoding
}
