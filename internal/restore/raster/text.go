package raster

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"ddiff/internal/restore/raster/metadata"
)

const (
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
	out, err := metadata.InsertPNG(file, []metadata.PNGChunk{{Kind: textKind, Data: []byte(keyword + "\x00" + textPlain + text)}}, func(c metadata.PNGChunk) bool { return hasText(c, keyword) })
	if err != nil {
		return nil, fmt.Errorf("write PNG text: %w", err)
	}
	return out, nil
}

// PNGText returns the text with a keyword in a PNG file. It checks structure and checksums of all chunks, but not the
// pixels. Errors are [ErrFormat], also for two texts with the keyword and for a compressed text, and [ErrTruncated].
func PNGText(file []byte, keyword string) (text string, found bool, err error) {
	for c, err := range metadata.PNGChunks(file) {
		if err != nil {
			return "", false, fmt.Errorf("read PNG text: %w", err)
		}
		if !hasText(c, keyword) {
			continue
		}
		if found {
			return "", false, fmt.Errorf("read PNG text: two chunks have the keyword %q: %w", keyword, ErrFormat)
		}
		if text, err = parseText(c.Data[len(keyword)+1:]); err != nil {
			return "", false, fmt.Errorf("read PNG text %q: %w", keyword, err)
		}
		found = true
	}
	return text, found, nil
}

// hasText reports whether the chunk is a text with a keyword.
func hasText(c metadata.PNGChunk, keyword string) bool {
	return c.Kind == textKind && bytes.HasPrefix(c.Data, []byte(keyword+"\x00"))
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
