package raster

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"io"
	"slices"
)

// maxProfile is the largest ICC profile that is read, in bytes.
const maxProfile = 4 << 20

// exifOf returns the TIFF structure with the EXIF data of a file, or nil.
func exifOf(c codec, data []byte) []byte {
	switch c.name {
	case "jpeg":
		return exifSegment(data)
	case "tiff":
		return data
	case "png":
		return pngBody(data, "eXIf")
	case "webp":
		return bytes.TrimPrefix(webpBody(data, "EXIF"), []byte("Exif\x00\x00"))
	}
	return nil
}

// iccProfile returns the ICC profile of a file, or nil for a file without a sound one.
func iccProfile(c codec, data []byte) []byte {
	var p []byte
	switch c.name {
	case "jpeg":
		p = jpegProfile(data)
	case "tiff":
		p = tiffProfile(data)
	case "png":
		p = pngProfile(data)
	case "webp":
		p = webpBody(data, "ICCP")
	}
	const header = 128 // of a profile, with its size and signature
	if len(p) < header || len(p) > maxProfile || string(p[36:40]) != "acsp" || int(binary.BigEndian.Uint32(p)) != len(p) {
		return nil
	}
	return p
}

// pngBody returns the first chunk of a kind of a PNG file, or nil.
func pngBody(data []byte, kind string) []byte {
	for c, err := range pngChunks(data) {
		if err != nil {
			return nil
		}
		if c.kind == kind {
			return c.data
		}
	}
	return nil
}

// pngProfile reads the chunk iCCP: a name that ends in a zero, the method of compression, the compressed profile.
func pngProfile(data []byte) []byte {
	_, rest, found := bytes.Cut(pngBody(data, "iCCP"), []byte{0})
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

// webpBody returns the first chunk of a kind of a WebP file, or nil.
func webpBody(data []byte, kind string) []byte {
	for rest := data[min(len(data), len(webpMagic)):]; len(rest) >= 8; {
		size := uint64(binary.LittleEndian.Uint32(rest[4:]))
		if size > uint64(len(rest)-8) {
			return nil
		}
		if string(rest[:4]) == kind {
			return rest[8 : 8+size]
		}
		rest = rest[min(uint64(len(rest)), 8+size+size%2):]
	}
	return nil
}

// jpegProfile joins the parts of a profile in the segments APP2: a mark, the number of the part from 1, the number of parts.
func jpegProfile(data []byte) []byte {
	const markerAPP2 = 0xe2
	mark := []byte("ICC_PROFILE\x00")
	type part struct {
		number byte
		data   []byte
	}
	var parts []part
	count := byte(0)
	for marker, body := range jpegSegments(data) {
		rest, ok := bytes.CutPrefix(body, mark)
		if marker != markerAPP2 || !ok || len(rest) < 2 {
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

// tiffProfile reads the tag 34675 of the first directory.
func tiffProfile(data []byte) []byte {
	const tagProfile = 34675
	for e := range tiffEntries(data) {
		if e.tag != tagProfile {
			continue
		}
		at, size := uint64(e.order.Uint32(e.value)), uint64(e.count)
		if at+size > uint64(len(data)) {
			return nil
		}
		return data[at : at+size]
	}
	return nil
}

// misread returns what the decoder misreads in a TIFF file without noticing, and the remedy, or "".
func misread(data []byte) string {
	const (
		tagBitsPerSample, tagCompression, tagPhotometric, tagPlanar = 258, 259, 262, 284
		huffman, group4, blackIsZero, separate                      = 2, 4, 1, 2
	)
	channels, values := uint32(1), map[uint16]uint16{}
	for e := range tiffEntries(data) {
		values[e.tag] = e.order.Uint16(e.value)
		if e.tag == tagBitsPerSample {
			channels = e.count
		}
	}
	switch c := values[tagCompression]; {
	case values[tagPlanar] == separate && channels > 1:
		return "the channels are in separate planes; save it with interleaved channels"
	case c >= huffman && c <= group4 && values[tagPhotometric] == blackIsZero: // the decoder exchanges black and white
		return "it has the compression of fax; save it with another one, such as LZW"
	}
	return ""
}
