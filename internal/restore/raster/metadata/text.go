package metadata

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ddiff/internal/restore/raster/tiff"
)

// webpText is the chunk of texts in WebP files.
const webpText = "TEXT"

// SetText returns a JPEG, TIFF or WebP file with a text, as [Text] finds it. PNG files have texts of their own.
func SetText(file []byte, keyword, text string) ([]byte, error) {
	body := []byte(keyword + "\x00" + text)
	switch kind(file) {
	case "jpeg":
		var all []JPEGSegment
		size := MaxSegment - len(keyword) - 1
		for at := 0; at < len(text); at += size {
			all = append(all, JPEGSegment{Marker: comment, Data: []byte(keyword + "\x00" + text[at:min(at+size, len(text))])})
		}
		end := 2 // behind the segment JFIF, which is the first one
		for marker, s := range JPEGSegments(file) {
			if marker == app0 {
				end = 2 + 4 + len(s)
			}
			break
		}
		added := InsertJPEG(file[:2:2], all)
		return append(append(bytes.Clone(file[:end]), added[2:]...), file[end:]...), nil
	case "tiff":
		return tiff.AddEntry(file, tagText, body)
	case "webp":
		chunk := JoinWebP([]WebPChunk{{Kind: webpText, Data: body}})
		out := append(bytes.Clone(file), chunk[12:]...)
		size := len(out) - 8
		for i := range 4 {
			out[4+i] = byte(size >> (8 * i))
		}
		return out, nil
	}
	return nil, fmt.Errorf("write text: %w", ErrFormat)
}

// Text returns a text that [SetText] wrote.
func Text(file []byte, keyword string) (text string, found bool) {
	mark := []byte(keyword + "\x00")
	switch kind(file) {
	case "jpeg":
		var all strings.Builder
		for marker, body := range JPEGSegments(file) {
			if part, ok := bytes.CutPrefix(body, mark); ok && marker == comment {
				all.Write(part)
				found = true
			}
		}
		return all.String(), found
	case "tiff":
		if d, err := tiff.First(file); err == nil {
			if e := d.Find(tagText); e != nil {
				part, ok := bytes.CutPrefix(e.Data, mark)
				return string(part), ok
			}
		}
	case "webp":
		part, ok := bytes.CutPrefix(WebPBody(file, webpText), mark)
		return string(part), ok
	}
	return "", false
}

// Beginnings of the comment among the texts of a PNG file: in Latin-1, and in UTF-8, not compressed and without language.
const (
	latinComment = "Comment\x00"
	utf8Comment  = "Comment\x00\x00\x00\x00\x00"
)

// commentChunk returns the comment of a JPEG file as a text of a PNG file.
func commentChunk(text []byte) PNGChunk {
	text = bytes.ReplaceAll(text, []byte{0}, nil)
	if utf8.Valid(text) {
		return PNGChunk{Kind: "iTXt", Data: slices.Concat([]byte(utf8Comment), text)}
	}
	return PNGChunk{Kind: "tEXt", Data: slices.Concat([]byte(latinComment), text)}
}

// commentOf returns the comment that such a text is, nil for another one.
func commentOf(c PNGChunk) (text []byte) {
	var ok bool
	switch c.Kind {
	case "iTXt":
		text, ok = bytes.CutPrefix(c.Data, []byte(utf8Comment))
	case "tEXt":
		text, ok = bytes.CutPrefix(c.Data, []byte(latinComment))
	}
	if !ok || len(text) == 0 {
		return nil
	}
	return text
}
