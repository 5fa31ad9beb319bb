package metadata

import (
	"encoding/binary"
	"iter"
)

// JPEGMagic begins every JPEG file.
const JPEGMagic = "\xff\xd8\xff"

// JPEGSegment is a segment of a JPEG file before its compressed pixels.
type JPEGSegment struct {
	Marker byte
	Data   []byte // at most MaxSegment bytes
}

// MaxSegment is the largest number of bytes of a segment.
const MaxSegment = 1<<16 - 3

// JPEGSegments yields the marker and the body of the segments of a JPEG file before its compressed pixels.
func JPEGSegments(data []byte) iter.Seq2[byte, []byte] {
	const markerSOS = 0xda // compressed pixels follow
	return func(yield func(byte, []byte) bool) {
		if len(data) < 2 {
			return
		}
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

// InsertJPEG returns a JPEG file with segments directly after its beginning. Longer segments than [MaxSegment] are left out.
func InsertJPEG(file []byte, segments []JPEGSegment) []byte {
	out := append([]byte(nil), file[:2]...)
	for _, s := range segments {
		if len(s.Data) > MaxSegment {
			continue
		}
		out = append(out, 0xff, s.Marker)
		out = binary.BigEndian.AppendUint16(out, uint16(len(s.Data)+2))
		out = append(out, s.Data...)
	}
	return append(out, file[2:]...)
}
