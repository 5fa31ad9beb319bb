package metadata

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"io"
	"regexp"
	"slices"
	"strings"

	"ddiff/internal/restore/raster/tiff"
)

// The largest sizes that are read, in bytes.
const (
	maxProfile = 4 << 20
	maxTexts   = 1 << 20 // of all texts of a PNG file
)

// Marks of segments and chunks.
const (
	exifMark      = "Exif\x00\x00"
	xmpMark       = "http://ns.adobe.com/xap/1.0/\x00"
	profileMark   = "ICC_PROFILE\x00"
	photoshopMark = "Photoshop 3.0\x00"
	jfifMark      = "JFIF\x00"
	xmpKeyword    = "XML:com.adobe.xmp\x00"
	resource      = "8BIM"
	resourceIPTC  = 0x0404

	app0, app1, app2, app13, comment = 0xe0, 0xe1, 0xe2, 0xed, 0xfe

	centimetresPerInch = 2.54
	metresPerInch      = 0.0254
	inch, centimetre   = 2, 3 // units of EXIF
)

// Metadata are the properties of a picture file. Nil or zero: the file has none.
type Metadata struct {
	// EXIF is a TIFF structure.
	EXIF []byte
	// XMP is a packet of XML, IPTC a sequence of records.
	XMP, IPTC []byte
	// Profile is a sound ICC profile.
	Profile []byte
	// DPI is the number of pixels per inch, across and down.
	DPI [2]float64
	// Chunks are texts and the description of colours of a PNG file; a comment of a JPEG file is a text.
	Chunks []PNGChunk
}

// kind returns the format of a file: png, jpeg, tiff, webp, bmp or "".
func kind(file []byte) string {
	begins := func(s string) bool { return strings.HasPrefix(string(file[:min(len(file), 16)]), s) }
	switch {
	case begins(PNGMagic):
		return "png"
	case begins(JPEGMagic):
		return "jpeg"
	case begins("II*\x00"), begins("MM\x00*"), begins("II+\x00"), begins("MM\x00+"):
		return "tiff"
	case begins("RIFF") && len(file) >= 12 && string(file[8:12]) == "WEBP":
		return "webp"
	case begins("BM"):
		return "bmp"
	}
	return ""
}

// Read reads the properties of a picture file of any format. Damaged ones are left out.
func Read(file []byte) Metadata {
	m := Metadata{Profile: Profile(file)}
	switch kind(file) {
	case "png":
		m.readPNG(file)
	case "jpeg":
		m.readJPEG(file)
	case "tiff":
		m.readTIFF(file)
	case "webp":
		m.EXIF = exif(file)
		m.XMP = slices.Clone(WebPBody(file, "XMP "))
	case "bmp":
		const at = 38 // of pixels per metre
		if len(file) >= at+8 {
			for i := range m.DPI {
				m.DPI[i] = float64(binary.LittleEndian.Uint32(file[at+4*i:])) * metresPerInch
			}
		}
	}
	if m.DPI[0] <= 0 || m.DPI[1] <= 0 {
		m.DPI = resolution(m.EXIF)
	}
	return m
}

func (m *Metadata) readPNG(file []byte) {
	m.EXIF = exif(file)
	if b := PNGBody(file, "pHYs"); len(b) == 9 && b[8] == 1 {
		for i := range m.DPI {
			m.DPI[i] = float64(binary.BigEndian.Uint32(b[4*i:])) * metresPerInch
		}
	}
	size := 0
	for c, err := range PNGChunks(file) {
		if err != nil {
			return
		}
		switch c.Kind {
		case "tEXt", "zTXt", "iTXt":
			text, found := bytes.CutPrefix(c.Data, []byte(xmpKeyword))
			// Texts of ddiff are passports; a raw profile repeats EXIF data with the old orientation.
			own := bytes.HasPrefix(c.Data, []byte("ddiff\x00")) || bytes.HasPrefix(c.Data, []byte("Raw profile type "))
			switch {
			case found && c.Kind == "iTXt":
				const plain = "\x00\x00\x00\x00" // not compressed, without language
				m.XMP = slices.Clone(bytes.TrimPrefix(text, []byte(plain)))
			case own || found:
			case size+len(c.Data) <= maxTexts:
				size += len(c.Data)
				m.Chunks = append(m.Chunks, c)
			}
		case "gAMA", "cHRM", "sRGB", "cICP":
			m.Chunks = append(m.Chunks, c)
		}
	}
}

func (m *Metadata) readJPEG(file []byte) {
	m.EXIF = exif(file)
	for marker, body := range JPEGSegments(file) {
		switch rest, xmp := bytes.CutPrefix(body, []byte(xmpMark)); {
		case marker == app0 && len(body) >= 12 && bytes.HasPrefix(body, []byte(jfifMark)):
			unit := map[byte]float64{1: 1, 2: centimetresPerInch}[body[7]]
			for i := range m.DPI {
				m.DPI[i] = float64(binary.BigEndian.Uint16(body[8+2*i:])) * unit
			}
		case marker == app1 && xmp && m.XMP == nil:
			m.XMP = slices.Clone(rest)
		case marker == app13 && bytes.HasPrefix(body, []byte(photoshopMark)) && m.IPTC == nil:
			m.IPTC = iptc(body[len(photoshopMark):])
		case marker == comment && !bytes.HasPrefix(body, []byte("ddiff\x00")): // of ddiff are passports
			m.Chunks = append(m.Chunks, commentChunk(body))
		}
	}
}

// iptc returns the records among the resources of Photoshop.
func iptc(b []byte) []byte {
	for len(b) >= 12 && string(b[:4]) == resource {
		id := binary.BigEndian.Uint16(b[4:])
		name := 1 + int(b[6])
		at := 6 + name + name%2
		if len(b) < at+4 {
			return nil
		}
		size := uint64(binary.BigEndian.Uint32(b[at:]))
		rest := b[at+4:]
		if size > uint64(len(rest)) {
			return nil
		}
		if id == resourceIPTC {
			return slices.Clone(rest[:size])
		}
		b = rest[min(uint64(len(rest)), size+size%2):]
	}
	return nil
}

// described are the tags of the first directory of a TIFF file that describe the picture, not its pixels.
var described = []uint16{
	269, tiff.TagDescription, 271, 272, tiff.TagXResolution, tiff.TagYResolution, 285, tiff.TagResolutionUnit, 305, 306, 315, 316, 18246, 18249, 33432, 40091, 40092, 40093, 40094, 40095,
}

func (m *Metadata) readTIFF(file []byte) {
	d, err := tiff.First(file)
	if err != nil {
		return
	}
	for tag, into := range map[uint16]*[]byte{tiff.TagXMP: &m.XMP, tiff.TagIPTC: &m.IPTC} {
		if e := d.Find(tag); e != nil {
			*into = slices.Clone(e.Data)
		}
	}
	if e := d.Find(tiff.TagPhotoshop); e != nil && m.IPTC == nil {
		m.IPTC = iptc(e.Data)
	}
	if t, err := tiff.ReadTree(file); err == nil {
		t = describing(t)
		if len(t.Entries)+len(t.Subs) > 0 {
			m.EXIF = t.Encode()
		}
	}
}

// describing returns a tree without the tags of pixels.
func describing(t *tiff.Tree) *tiff.Tree {
	out := &tiff.Tree{Subs: t.Subs}
	for _, e := range t.Entries {
		if slices.Contains(described, e.Tag) && !describesStack(e) {
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}

// describesStack reports whether an entry is the description in which ImageJ, tifffile and OME count the pages of their file, by which they read it.
func describesStack(e tiff.Entry) bool {
	text := string(bytes.TrimSpace(e.Data[:min(len(e.Data), 1<<10)]))
	return e.Tag == tiff.TagDescription && (strings.HasPrefix(text, "ImageJ=") || strings.HasPrefix(text, `{"shape":`) || strings.Contains(text, "<OME "))
}

// exif returns the EXIF data of a file, or nil. Those of a TIFF file are the file.
func exif(file []byte) []byte {
	switch kind(file) {
	case "jpeg":
		for marker, body := range JPEGSegments(file) {
			if data, ok := bytes.CutPrefix(body, []byte(exifMark)); ok && marker == app1 {
				return slices.Clone(data)
			}
		}
	case "tiff":
		return file
	case "png":
		return slices.Clone(PNGBody(file, "eXIf"))
	case "webp":
		return slices.Clone(bytes.TrimPrefix(WebPBody(file, "EXIF"), []byte(exifMark)))
	}
	return nil
}

// Orientation returns the EXIF orientation of a file, 1 to 8; 1 without a sound one.
func Orientation(file []byte) int {
	d, err := tiff.First(exif(file))
	if err != nil {
		return 1
	}
	if e := d.Find(tiff.TagOrientation); e != nil && e.Type == tiff.TypeShort {
		if v, ok := d.Number(tiff.TagOrientation); ok && v >= 1 && v <= 8 {
			return int(v)
		}
	}
	return 1
}

// resolution returns the pixels per inch of EXIF data.
func resolution(data []byte) (dpi [2]float64) {
	d, err := tiff.First(data)
	if err != nil {
		return dpi
	}
	unit, ok := d.Number(tiff.TagResolutionUnit)
	for i, tag := range []uint16{tiff.TagXResolution, tiff.TagYResolution} {
		v, found := d.Rational(tag)
		switch {
		case !found:
		case unit == centimetre:
			dpi[i] = v * centimetresPerInch
		case unit == inch || !ok:
			dpi[i] = v
		}
	}
	return dpi
}

// Profile returns the ICC profile of a file, or nil for a file without a sound one.
func Profile(file []byte) []byte {
	var p []byte
	switch kind(file) {
	case "jpeg":
		p = jpegProfile(file)
	case "tiff":
		if d, err := tiff.First(file); err == nil {
			if e := d.Find(tiff.TagProfile); e != nil {
				p = e.Data
			}
		}
	case "png":
		p = pngProfile(file)
	case "webp":
		p = WebPBody(file, "ICCP")
	}
	const header = 128 // of a profile, with its size and signature
	if len(p) < header || len(p) > maxProfile || string(p[36:40]) != "acsp" || int(binary.BigEndian.Uint32(p)) != len(p) {
		return nil
	}
	return slices.Clone(p)
}

// pngProfile reads the chunk iCCP: a name that ends in a zero, the method of compression, the compressed profile.
func pngProfile(file []byte) []byte {
	_, rest, found := bytes.Cut(PNGBody(file, "iCCP"), []byte{0})
	if !found || len(rest) < 1 || rest[0] != 0 {
		return nil
	}
	r, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return nil
	}
	p, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil {
		return nil
	}
	return p
}

// jpegProfile joins the parts of a profile in the segments APP2: a mark, the number of the part from 1, the number of parts.
func jpegProfile(file []byte) []byte {
	type part struct {
		number byte
		data   []byte
	}
	var parts []part
	count := byte(0)
	for marker, body := range JPEGSegments(file) {
		rest, ok := bytes.CutPrefix(body, []byte(profileMark))
		if marker != app2 || !ok || len(rest) < 2 {
			continue
		}
		parts, count = append(parts, part{rest[0], rest[2:]}), rest[1]
	}
	if len(parts) != int(count) {
		return nil
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	var out []byte
	for i, p := range parts {
		if int(p.number) != i+1 {
			return nil
		}
		out = append(out, p.data...)
	}
	return out
}

// xmpOrientation matches the orientation in a packet of XMP.
var xmpOrientation = regexp.MustCompile(`(tiff:Orientation(?:=["']|>))[1-8]`)

// Upright returns the properties for pixels that were turned upright and have another size. Thumbnails are left out, and properties of data that the
// restored file has not.
func (m Metadata) Upright(width, height int) Metadata {
	if m.EXIF = slices.Clone(m.EXIF); m.EXIF != nil {
		tiff.DropOthers(m.EXIF)
		tiff.SetNumber(m.EXIF, 0, tiff.TagOrientation, 1)
		const pixelWidth, pixelHeight = 40962, 40963
		for _, n := range []struct {
			below, tag uint16
			v          int
		}{{0, tiff.TagWidth, width}, {0, tiff.TagHeight, height}, {tiff.TagEXIF, pixelWidth, width}, {tiff.TagEXIF, pixelHeight, height}} {
			tiff.SetNumber(m.EXIF, n.below, n.tag, uint32(n.v))
		}
	}
	m.XMP = withoutPointers(xmpOrientation.ReplaceAll(m.XMP, []byte("${1}1")))
	return m
}
