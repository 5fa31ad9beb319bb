package metadata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
)

// PNGMagic begins every PNG file.
const PNGMagic = "\x89PNG\r\n\x1a\n"

// PNGChunk is one chunk of a PNG file.
type PNGChunk struct {
	Kind string
	Data []byte
	raw  []byte // with length, kind and checksum
}

// InsertPNG returns a PNG file with chunks directly after its header, without the chunks that drop reports and without data
// after the last chunk. Drop may be nil.
func InsertPNG(file []byte, chunks []PNGChunk, drop func(c PNGChunk) bool) ([]byte, error) {
	out := make([]byte, 0, len(file)+256)
	out = append(out, PNGMagic...)
	for c, err := range PNGChunks(file) {
		if err != nil {
			return nil, err
		}
		if drop != nil && drop(c) {
			continue
		}
		out = append(out, c.raw...)
		if c.Kind == "IHDR" {
			for _, own := range chunks {
				out = AppendPNG(out, own)
			}
		}
	}
	return out, nil
}

// PNGBody returns the first chunk of a kind of a PNG file, or nil.
func PNGBody(file []byte, kind string) []byte {
	for c, err := range PNGChunks(file) {
		if err != nil {
			return nil
		}
		if c.Kind == kind {
			return c.Data
		}
	}
	return nil
}

// PNGChunks yields the chunks of a PNG file from IHDR to IEND and verifies their checksums. It ends after the first
// error.
func PNGChunks(file []byte) iter.Seq2[PNGChunk, error] {
	return func(yield func(PNGChunk, error) bool) {
		if !bytes.HasPrefix(file, []byte(PNGMagic)) {
			yield(PNGChunk{}, fmt.Errorf("not a PNG file: %w", ErrFormat))
			return
		}
		rest := file[len(PNGMagic):]
		for first := true; ; first = false {
			c, err := nextChunk(rest)
			if err == nil && first && c.Kind != "IHDR" {
				err = fmt.Errorf("the file begins with the chunk %q instead of IHDR: %w", c.Kind, ErrFormat)
			}
			if err == nil && !first && c.Kind == "IHDR" {
				err = fmt.Errorf("the file has a second header: %w", ErrFormat)
			}
			if !yield(c, err) || err != nil || c.Kind == "IEND" {
				return
			}
			rest = rest[len(c.raw):]
		}
	}
}

// nextChunk returns the chunk at the beginning of data.
func nextChunk(data []byte) (PNGChunk, error) {
	if len(data) < 8 {
		return PNGChunk{}, fmt.Errorf("the file ends before IEND: %w", ErrTruncated)
	}
	kind := string(data[4:8])
	// The comparison is unsigned, so that no length overflows.
	size := uint64(binary.BigEndian.Uint32(data))
	if uint64(len(data)) < size+12 {
		return PNGChunk{}, fmt.Errorf("the file ends in the chunk %q of %d bytes: %w", kind, size, ErrTruncated)
	}
	body, raw := data[8:8+size], data[:size+12]
	if crc32.ChecksumIEEE(data[4:8+size]) != binary.BigEndian.Uint32(raw[8+size:]) {
		return PNGChunk{}, fmt.Errorf("the checksum of the chunk %q is wrong: %w", kind, ErrFormat)
	}
	return PNGChunk{kind, body, raw}, nil
}

// AppendPNG appends a chunk to a PNG file.
func AppendPNG(out []byte, c PNGChunk) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(c.Data)))
	begin := len(out)
	out = append(append(out, c.Kind...), c.Data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[begin:]))
}
