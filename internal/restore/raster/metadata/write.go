package metadata

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/raster/tiff"
)

// Texts returns the chunks of texts: those that describe colours say less than a profile.
func Texts(chunks []PNGChunk) (out []PNGChunk) {
	for _, c := range chunks {
		if c.Kind == "tEXt" || c.Kind == "zTXt" || c.Kind == "iTXt" {
			out = append(out, c)
		}
	}
	return out
}

// tagText is the private tag of texts in TIFF files.
const tagText = 65112

// Insert returns a PNG, JPEG or WebP file with the properties, in place of none: the file must come from an encoder that writes none. width, height and
// alpha are those of its pixels. A TIFF file gets them when it is encoded, see [Metadata.Tree].
func (m Metadata) Insert(file []byte, width, height int, alpha bool) ([]byte, error) {
	switch kind(file) {
	case "png":
		return m.insertPNG(file)
	case "jpeg":
		return m.insertJPEG(file), nil
	case "webp":
		return m.insertWebP(file, width, height, alpha)
	}
	return nil, fmt.Errorf("write metadata: %w", ErrFormat)
}

func (m Metadata) insertPNG(file []byte) ([]byte, error) {
	all := slices.Clone(m.Chunks)
	if m.Profile != nil {
		all = Texts(m.Chunks)
		var body bytes.Buffer
		body.WriteString("ICC profile\x00\x00")
		w := zlib.NewWriter(&body)
		_, err := w.Write(m.Profile)
		if err := errors.Join(err, w.Close()); err != nil {
			return nil, fmt.Errorf("write metadata: compress the profile: %w", err)
		}
		all = append(all, PNGChunk{Kind: "iCCP", Data: body.Bytes()})
	}
	if m.DPI[0] > 0 && m.DPI[1] > 0 {
		body := binary.BigEndian.AppendUint32(nil, uint32(math.Round(m.DPI[0]/metresPerInch)))
		body = binary.BigEndian.AppendUint32(body, uint32(math.Round(m.DPI[1]/metresPerInch)))
		all = append(all, PNGChunk{Kind: "pHYs", Data: append(body, 1)})
	}
	if m.EXIF != nil {
		all = append(all, PNGChunk{Kind: "eXIf", Data: m.EXIF})
	}
	if m.XMP != nil {
		all = append(all, PNGChunk{Kind: "iTXt", Data: slices.Concat([]byte(xmpKeyword), []byte("\x00\x00\x00\x00"), m.XMP)})
	}
	return InsertPNG(file, all, nil)
}

func (m Metadata) insertJPEG(file []byte) []byte {
	var all []JPEGSegment
	add := func(marker byte, parts ...[]byte) {
		all = append(all, JPEGSegment{Marker: marker, Data: slices.Concat(parts...)})
	}
	const version = "\x01\x02"
	jfif := []byte(jfifMark + version + "\x00\x00\x01\x00\x01\x00\x00") // without a unit, square pixels, no thumbnail
	if m.DPI[0] > 0 && m.DPI[1] > 0 {
		jfif[7] = 1
		for i, v := range m.DPI {
			binary.BigEndian.PutUint16(jfif[8+2*i:], uint16(min(math.MaxUint16, math.Round(v))))
		}
	}
	add(app0, jfif)
	if m.EXIF != nil {
		add(app1, []byte(exifMark), fitting(m.EXIF, MaxSegment-len(exifMark)))
	}
	if m.XMP != nil {
		add(app1, []byte(xmpMark), m.XMP)
	}
	if m.IPTC != nil {
		head := []byte(photoshopMark + resource + "\x04\x04\x00\x00")
		body := binary.BigEndian.AppendUint32(head, uint32(len(m.IPTC)))
		if body = append(body, m.IPTC...); len(m.IPTC)%2 == 1 {
			body = append(body, 0)
		}
		add(app13, body)
	}
	const part = MaxSegment - len(profileMark) - 2
	n := (len(m.Profile) + part - 1) / part
	for i := range n {
		if n > math.MaxUint8 {
			break
		}
		add(app2, []byte(profileMark), []byte{byte(i + 1), byte(n)}, m.Profile[i*part:min(len(m.Profile), (i+1)*part)])
	}
	for _, c := range m.Chunks {
		if text := commentOf(c); text != nil {
			add(comment, text[:min(len(text), MaxSegment)])
		}
	}
	return InsertJPEG(file, all)
}

// fitting returns EXIF data of at most size bytes: those above without thumbnail and, if need be, without the notes of the maker.
func fitting(data []byte, size int) []byte {
	if len(data) <= size {
		return data
	}
	t, err := tiff.ReadTree(data)
	if err != nil {
		return data
	}
	if out := t.Encode(); len(out) <= size {
		return out
	}
	const makerNote = 37500
	if sub := t.Subs[tiff.TagEXIF]; sub != nil {
		sub.Entries = slices.DeleteFunc(sub.Entries, func(e tiff.Entry) bool { return e.Tag == makerNote })
	}
	return t.Encode()
}

func (m Metadata) insertWebP(file []byte, width, height int, alpha bool) ([]byte, error) {
	pixels := WebPBody(file, "VP8L")
	if pixels == nil {
		return nil, fmt.Errorf("write metadata: no lossless WebP: %w", ErrFormat)
	}
	data := m.EXIF
	if data == nil && m.DPI[0] > 0 && m.DPI[1] > 0 {
		data = (&tiff.Tree{Entries: m.density()}).Encode()
	}
	const profileFlag, alphaFlag, exifFlag, xmpFlag = 0x20, 0x10, 0x08, 0x04
	head := make([]byte, 10)
	var before, after []WebPChunk
	add := func(flag byte, into *[]WebPChunk, kind string, body []byte) {
		if body != nil {
			head[0] |= flag
			*into = append(*into, WebPChunk{Kind: kind, Data: body})
		}
	}
	add(profileFlag, &before, "ICCP", m.Profile)
	add(exifFlag, &after, "EXIF", data)
	add(xmpFlag, &after, "XMP ", m.XMP)
	if alpha {
		head[0] |= alphaFlag
	}
	for i, v := range []int{width - 1, height - 1} {
		head[4+3*i], head[5+3*i], head[6+3*i] = byte(v), byte(v>>8), byte(v>>16)
	}
	all := append([]WebPChunk{{Kind: "VP8X", Data: head}}, before...)
	all = append(all, WebPChunk{Kind: "VP8L", Data: pixels})
	return JoinWebP(append(all, after...)), nil
}

// density are the tags of the resolution.
func (m Metadata) density() []tiff.Entry {
	return []tiff.Entry{tiff.Rational(tiff.TagXResolution, m.DPI[0]), tiff.Rational(tiff.TagYResolution, m.DPI[1]), tiff.Short(tiff.TagResolutionUnit, inch)}
}

// Tree returns the properties as tags of a TIFF file.
func (m Metadata) Tree() *tiff.Tree {
	t := &tiff.Tree{}
	if read, err := tiff.ReadTree(m.EXIF); err == nil {
		t = describing(read)
	}
	if m.DPI[0] > 0 && m.DPI[1] > 0 {
		for _, e := range m.density() {
			t.Set(e)
		}
	}
	for tag, data := range map[uint16][]byte{tiff.TagXMP: m.XMP, tiff.TagIPTC: m.IPTC, tiff.TagProfile: m.Profile} {
		kind := uint16(tiff.TypeUndefined)
		if tag == tiff.TagXMP {
			kind = tiff.TypeByte
		}
		if data != nil {
			t.Set(tiff.Bytes(tag, kind, data))
		}
	}
	return t
}
