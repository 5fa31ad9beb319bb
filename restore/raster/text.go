package raster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"unicode/utf8"
)

const (
	pngMagic = "\x89PNG\r\n\x1a\n"
	// textKind is the type of chunks with international text.
	textKind = "iTXt"
	// textPlain separates keyword and text: not compressed (two bytes), no language and no translated keyword (both end in
	// a zero).
	textPlain = "\x00\x00\x00\x00"
)

// SetPNGText returns a PNG file with a text chunk directly after its header, replacing all text chunks with the same
// keyword. It copies the other chunks unchanged and drops data after the last chunk. Equal arguments give equal bytes.
//
// The keyword has 1 to 79 ASCII characters without blanks. The text is valid UTF-8 without zero bytes. [ErrFormat] and
// [ErrTruncated]: the sequence of chunks is invalid.
func SetPNGText(file []byte, keyword, text string) ([]byte, error) {
	out, err := insertChunk(file, textKind, keyword+"\x00"+textPlain+text, func(c pngChunk) bool { return c.hasText(keyword) })
	if err != nil {
		return nil, fmt.Errorf("write PNG text: %w", err)
	}
	return out, nil
}

// insertChunk returns a PNG file with a chunk directly after its header, without the chunks that drop reports and without data
// after the last chunk.
func insertChunk(file []byte, kind, body string, drop func(c pngChunk) bool) ([]byte, error) {
	out := make([]byte, 0, len(file)+len(body)+12)
	out = append(out, pngMagic...)
	for c, err := range pngChunks(file) {
		if err != nil {
			return nil, err
		}
		if drop(c) {
			continue
		}
		out = append(out, c.raw...)
		if c.kind == "IHDR" {
			out = appendChunk(out, kind, body)
		}
	}
	return out, nil
}

// PNGText returns the text with a keyword in a PNG file. It checks structure and checksums of all chunks, but not the
// pixels. Errors are [ErrFormat], also for two texts with the keyword and for a compressed text, and [ErrTruncated].
func PNGText(file []byte, keyword string) (text string, found bool, err error) {
	for c, err := range pngChunks(file) {
		if err != nil {
			return "", false, fmt.Errorf("read PNG text: %w", err)
		}
		if !c.hasText(keyword) {
			continue
		}
		if found {
			return "", false, fmt.Errorf("read PNG text: two chunks have the keyword %q: %w", keyword, ErrFormat)
		}
		if text, err = parseText(c.data[len(keyword)+1:]); err != nil {
			return "", false, fmt.Errorf("read PNG text %q: %w", keyword, err)
		}
		found = true
	}
	return text, found, nil
}

// pngChunk is one chunk of a PNG file.
type pngChunk struct {
	kind string
	data []byte
	raw  []byte // with length, kind and checksum
}

// hasText reports whether the chunk is a text with a keyword.
func (c pngChunk) hasText(keyword string) bool {
	return c.kind == textKind && bytes.HasPrefix(c.data, []byte(keyword+"\x00"))
}

// pngChunks yields the chunks of a PNG file from IHDR to IEND and verifies their checksums. It ends after the first
// error.
func pngChunks(file []byte) iter.Seq2[pngChunk, error] {
	return func(yield func(pngChunk, error) bool) {
		if !bytes.HasPrefix(file, []byte(pngMagic)) {
			yield(pngChunk{}, fmt.Errorf("not a PNG file: %w", ErrFormat))
			return
		}
		rest := file[len(pngMagic):]
		for first := true; ; first = false {
			c, err := nextChunk(rest)
			if err == nil && first && c.kind != "IHDR" {
				err = fmt.Errorf("the file begins with the chunk %q instead of IHDR: %w", c.kind, ErrFormat)
			}
			if err == nil && !first && c.kind == "IHDR" {
				err = fmt.Errorf("the file has a second header: %w", ErrFormat)
			}
			if !yield(c, err) || err != nil || c.kind == "IEND" {
				return
			}
			rest = rest[len(c.raw):]
		}
	}
}

// nextChunk returns the chunk at the beginning of data.
func nextChunk(data []byte) (pngChunk, error) {
	if len(data) < 8 {
		return pngChunk{}, fmt.Errorf("the file ends before IEND: %w", ErrTruncated)
	}
	kind := string(data[4:8])
	// The comparison is unsigned, so that no length overflows.
	size := uint64(binary.BigEndian.Uint32(data))
	if uint64(len(data)) < size+12 {
		return pngChunk{}, fmt.Errorf("the file ends in the chunk %q of %d bytes: %w", kind, size, ErrTruncated)
	}
	body, raw := data[8:8+size], data[:size+12]
	if crc32.ChecksumIEEE(data[4:8+size]) != binary.BigEndian.Uint32(raw[8+size:]) {
		return pngChunk{}, fmt.Errorf("the checksum of the chunk %q is wrong: %w", kind, ErrFormat)
	}
	return pngChunk{kind, body, raw}, nil
}

// appendChunk appends a chunk.
func appendChunk(out []byte, kind, body string) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	begin := len(out)
	out = append(append(out, kind...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[begin:]))
}

// parseText returns the text of a chunk after its keyword: flag and method of compression, language, translated keyword, text.
func parseText(data []byte) (string, error) {
	const flags = 2
	fields := bytes.SplitN(data[min(flags, len(data)):], []byte{0}, 3)
	if len(fields) < 3 || data[0] != 0 {
		return "", fmt.Errorf("the text is compressed, or its chunk ends before it: %w", ErrFormat)
	}
	if !utf8.Valid(fields[2]) {
		return "", fmt.Errorf("the text is not UTF-8: %w", ErrFormat)
	}
	return string(fields[2]), nil
}
