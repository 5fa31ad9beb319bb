package metadata

import (
	"encoding/binary"
)

// WebPMagic begins every WebP file; a '?' is any byte.
const WebPMagic = "RIFF????WEBP"

// WebPBody returns the first chunk of a kind of a WebP file, or nil.
func WebPBody(data []byte, kind string) []byte {
	for rest := data[min(len(data), len(WebPMagic)):]; len(rest) >= 8; {
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

// WebPChunk is a chunk of a WebP file.
type WebPChunk struct {
	Kind string
	Data []byte
}

// JoinWebP returns a WebP file of chunks.
func JoinWebP(chunks []WebPChunk) []byte {
	out := []byte("RIFF\x00\x00\x00\x00WEBP")
	for _, c := range chunks {
		out = append(out, c.Kind...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(c.Data)))
		if out = append(out, c.Data...); len(c.Data)%2 == 1 {
			out = append(out, 0)
		}
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}
