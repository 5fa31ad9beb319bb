package metadata

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"ddiff/internal/restore/raster/tiff"
)

// Loss is what a restored file has not of its source.
type Loss struct {
	// Colours: the loss changes how the picture looks.
	Colours bool
	// Text is a sentence without its end.
	Text string
}

// elsewhere are the namespaces of XMP whose properties describe data outside of the packet, such as a video behind the picture, which a restored file has not.
var elsewhere = []string{
	nsMotion, nsAdobeGain, nsAppleGain, nsNote,
	"http://ns.google.com/photos/1.0/container/", "http://ns.google.com/photos/1.0/container/item/",
	"http://ns.google.com/photos/1.0/image/", "http://ns.google.com/photos/1.0/audio/", "http://ns.google.com/photos/1.0/depthmap/",
	"http://ns.google.com/photos/dd/1.0/device/", "http://ns.google.com/photos/dd/1.0/depthmap/", "http://ns.google.com/photos/dd/1.0/image/",
}

const (
	nsMotion    = "http://ns.google.com/photos/1.0/camera/"
	nsAdobeGain = "http://ns.adobe.com/hdr-gain-map/1.0/"
	nsAppleGain = "http://ns.apple.com/HDRGainMap/1.0/"
	nsNote      = "http://ns.adobe.com/xmp/note/"
	isoGain     = "urn:iso:std:iso:ts:21496:-1" // begins a segment APP2
)

// Losses returns what [Read] leaves out of a file, and what a restored file in another format than PNG cannot have.
func Losses(file []byte, toPNG bool) (out []Loss) {
	m := Read(file)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return bytes.Contains(m.XMP, []byte(part)) })
	}
	if has(":MotionPhoto", ":MicroVideo") {
		out = append(out, Loss{false, "the video of the motion photo is left out"})
	}
	if has(nsAdobeGain, nsAppleGain) || slices.ContainsFunc(segments(file, app2), func(b []byte) bool { return bytes.HasPrefix(b, []byte(isoGain)) }) {
		out = append(out, Loss{true, "the gain map is left out, so that screens with a high dynamic range show the picture as others do"})
	}
	if has(":HasExtendedXMP") {
		out = append(out, Loss{false, "the extended XMP data, a second packet, are left out"})
	}
	if m.XMP != nil && withoutPointers(m.XMP) == nil {
		out = append(out, Loss{false, "the XMP data, which are no valid XML, are left out"})
	}
	if n := tiff.Pages(file); n > 1 {
		out = append(out, Loss{false, fmt.Sprintf("the first of %d pages was restored", n)})
	}
	if names := m.ownColours(); !toPNG && names != "" {
		out = append(out, Loss{true, fmt.Sprintf("the meaning of the colours is in %s, which only a PNG file can have, and the picture may look too dark, too bright or pale; give --format png", names)})
	}
	return out
}

// segments returns the bodies of the segments of a JPEG file with a marker.
func segments(file []byte, marker byte) (out [][]byte) {
	if kind(file) != "jpeg" {
		return nil
	}
	for m, body := range JPEGSegments(file) {
		if m == marker {
			out = append(out, body)
		}
	}
	return out
}

// ownColours names the chunks of a PNG file without a profile that describe other colours than those of sRGB.
func (m Metadata) ownColours() string {
	var names []string
	for _, c := range m.Chunks {
		switch {
		case m.Profile != nil, c.Kind == "sRGB":
			return ""
		case c.Kind == "cICP" && !bytes.HasPrefix(c.Data, []byte{1, 13}),
			c.Kind == "gAMA" && (len(c.Data) != 4 || differs(binary.BigEndian.Uint32(c.Data), 45455)),
			c.Kind == "cHRM" && !isRec709(c.Data):
			names = append(names, c.Kind)
		}
	}
	return strings.Join(names, ", ")
}

// isRec709 reports whether the body of a chunk cHRM has the white and the primaries of sRGB.
func isRec709(body []byte) bool {
	want := []uint32{31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000}
	for i, v := range want {
		if len(body) != 4*len(want) || differs(binary.BigEndian.Uint32(body[4*i:]), v) {
			return false
		}
	}
	return true
}

// differs reports whether two numbers of a PNG file, in hundred thousandths, differ by more than rounding.
func differs(a, b uint32) bool { return max(a, b)-min(a, b) > 100 }

// withoutPointers returns a packet of XMP without the properties of the namespaces elsewhere. One that is no XML is left out.
func withoutPointers(packet []byte) []byte {
	var prefixes []string
	for _, found := range regexp.MustCompile(`xmlns:([\w.-]+)\s*=\s*["']([^"']*)["']`).FindAllSubmatch(packet, -1) {
		if slices.Contains(elsewhere, string(found[2])) {
			prefixes = append(prefixes, regexp.QuoteMeta(string(found[1])))
		}
	}
	if prefixes == nil {
		return packet
	}
	attribute := regexp.MustCompile(`\s+(?:` + strings.Join(prefixes, "|") + `):[\w.-]+\s*=\s*(?:"[^"]*"|'[^']*')`)
	packet = attribute.ReplaceAll(packet, nil)
	var out []byte
	dec := xml.NewDecoder(bytes.NewReader(packet))
	for kept := int64(0); ; {
		begin := dec.InputOffset()
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return append(out, packet[kept:]...)
		}
		start, ok := token.(xml.StartElement)
		if ok && slices.Contains(elsewhere, start.Name.Space) {
			out = append(out, packet[kept:begin]...)
			err = dec.Skip()
			kept = dec.InputOffset()
		}
		if err != nil {
			return nil
		}
	}
}
