package raster

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// upright is the EXIF orientation of an image that needs no transformation.
const upright = 1

// orientation returns the EXIF orientation of a JPEG, 1 to 8, and upright for other formats and for missing or invalid
// tags.
func orientation(c codec, data []byte) int {
	if c.name != "jpeg" {
		return upright
	}
	return exifOrientation(exifSegment(data))
}

// exifSegment returns the TIFF structure in the first EXIF segment (APP1), or nil.
func exifSegment(data []byte) []byte {
	const markerAPP1 = 0xe1
	for marker, body := range jpegSegments(data) {
		if tiff, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00")); ok && marker == markerAPP1 {
			return tiff
		}
	}
	return nil
}

// jpegSegments yields the marker and the body of the segments of a JPEG file before its compressed pixels.
func jpegSegments(data []byte) iter.Seq2[byte, []byte] {
	const markerSOS = 0xda // compressed pixels follow
	return func(yield func(byte, []byte) bool) {
		data := data[2:] // the SOI marker
		for len(data) >= 4 && data[0] == 0xff {
			marker := data[1]
			if marker == 0xff { // fill byte
				data = data[1:]
				continue
			}
			size := int(binary.BigEndian.Uint16(data[2:])) // includes itself
			if marker == markerSOS || size < 2 || 2+size > len(data) || !yield(marker, data[4:2+size]) {
				return
			}
			data = data[2+size:]
		}
	}
}

// exifOrientation reads tag 0x0112 of the first image directory.
func exifOrientation(tiff []byte) int {
	const tagOrientation, typeShort = 0x0112, 3
	for e := range tiffEntries(tiff) {
		if e.tag == tagOrientation && e.kind == typeShort {
			if v := int(e.order.Uint16(e.value)); v >= 1 && v <= 8 {
				return v
			}
			return upright
		}
	}
	return upright
}

// tiffEntry is an entry of a TIFF directory. Value has four bytes.
type tiffEntry struct {
	order     binary.ByteOrder
	tag, kind uint16
	count     uint32
	value     []byte
}

// tiffEntries yields the entries of the first directory of a TIFF structure.
func tiffEntries(tiff []byte) iter.Seq[tiffEntry] {
	const headerSize, entrySize = 8, 12
	return func(yield func(tiffEntry) bool) {
		if len(tiff) < headerSize {
			return
		}
		var order binary.ByteOrder
		switch string(tiff[:4]) {
		case "II*\x00":
			order = binary.LittleEndian
		case "MM\x00*":
			order = binary.BigEndian
		default:
			return
		}
		at := uint64(order.Uint32(tiff[4:]))
		if at+2 > uint64(len(tiff)) {
			return
		}
		directory := tiff[at:]
		entries := int(order.Uint16(directory))
		directory = directory[2:]
		for range entries {
			if len(directory) < entrySize {
				return
			}
			e := tiffEntry{order, order.Uint16(directory), order.Uint16(directory[2:]), order.Uint32(directory[4:]), directory[8:entrySize]}
			if !yield(e) {
				return
			}
			directory = directory[entrySize:]
		}
	}
}

// Transposed reports whether an EXIF orientation exchanges width and height.
func Transposed(orientation int) bool { return orientation >= 5 }

// Orient applies an EXIF orientation, 1 to 8, to an image.
func Orient(img *Image, orientation int) *Image {
	if orientation == upright {
		return img
	}
	w, h := img.Width, img.Height
	// The pixel at (x, y) of the result is source[start + x*dx + y*dy].
	var start, dx, dy int
	switch orientation {
	case 2: // mirrored left to right
		start, dx, dy = w-1, -1, w
	case 3: // half turn
		start, dx, dy = h*w-1, -1, -w
	case 4: // mirrored top to bottom
		start, dx, dy = (h-1)*w, 1, -w
	case 5: // transposed
		start, dx, dy = 0, w, 1
	case 6: // quarter turn clockwise
		start, dx, dy = (h-1)*w, -w, 1
	case 7: // transposed along the other diagonal
		start, dx, dy = h*w-1, -w, -1
	default: // 8: quarter turn counter-clockwise
		start, dx, dy = w-1, w, -1
	}
	out := New(img.Channels, h, w)
	if Transposed(orientation) {
		out.Height, out.Width = w, h
	}
	for c := range img.Channels {
		src, dst := img.Plane(c), out.Plane(c)
		i := 0
		for y := range out.Height {
			for x := range out.Width {
				dst[i] = src[start+x*dx+y*dy]
				i++
			}
		}
	}
	return out
}
