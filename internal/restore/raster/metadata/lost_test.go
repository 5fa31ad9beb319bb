package metadata_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

func withXMP(t *testing.T, packet string, more ...metadata.JPEGSegment) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	return metadata.InsertJPEG(out.Bytes(), append([]metadata.JPEGSegment{{Marker: 0xe1, Data: []byte("http://ns.adobe.com/xap/1.0/\x00" + packet)}}, more...))
}

func packet(attributes, elements string) string {
	return `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">` +
		`<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" dc:format="image/jpeg" ` + attributes + `><dc:title>a &lt; b</dc:title>` + elements +
		`</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`
}

// TestPointers: what describes data outside of a packet leaves it, and the rest stays as it is.
func TestPointers(t *testing.T) {
	t.Parallel()
	const camera, container = ` xmlns:GCamera="http://ns.google.com/photos/1.0/camera/"`, ` xmlns:C="http://ns.google.com/photos/1.0/container/"`
	const directory = `<C:Directory><rdf:Seq><rdf:li rdf:parseType="Resource"><C:Item C:Length="9"/></rdf:li></rdf:Seq></C:Directory>`
	for name, c := range map[string]struct{ attributes, elements, losses string }{
		"none":     {` dc:source="x"`, `<dc:type>y</dc:type>`, ""},
		"motion":   {camera + container + ` GCamera:MotionPhoto="1" GCamera:MicroVideoOffset='2024'`, directory, "the video of the motion photo is left out"},
		"gain map": {` xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"`, `<hdrgm:GainMapMax>3</hdrgm:GainMapMax>`, "the gain map is left out"},
		"extended": {` xmlns:n="http://ns.adobe.com/xmp/note/" n:HasExtendedXMP="0123"`, "", "the extended XMP data"},
	} {
		file := withXMP(t, packet(c.attributes, c.elements))
		got, want := string(metadata.Read(file).Upright(8, 8).XMP), packet(c.attributes, c.elements)
		if c.losses != "" {
			declared := strings.Fields(c.attributes)
			want = packet(" "+strings.Join(keep(declared), " "), "")
			got, want = strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")
			want = strings.ReplaceAll(want, " >", ">")
		}
		if got != want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, want)
		}
		wantLosses(t, name, metadata.Losses(file, false), c.losses)
	}
	damaged := withXMP(t, packet(camera, "<unclosed>"))
	if got := metadata.Read(damaged).Upright(8, 8).XMP; got != nil {
		t.Errorf("damaged packet: %s", got)
	}
	wantLosses(t, "damaged packet", metadata.Losses(damaged, false), "the XMP data, which are no valid XML")
}

// keep returns the declarations of namespaces.
func keep(attributes []string) (out []string) {
	for _, a := range attributes {
		if strings.HasPrefix(a, "xmlns:") {
			out = append(out, a)
		}
	}
	return out
}

func wantLosses(t *testing.T, name string, got []metadata.Loss, want string) {
	t.Helper()
	if len(got) > 1 || (len(got) == 1) != (want != "") || want != "" && !strings.HasPrefix(got[0].Text, want) {
		t.Errorf("%s: losses %+v, want %q", name, got, want)
	}
}

func TestColoursOfPNG(t *testing.T) {
	t.Parallel()
	var plain bytes.Buffer
	if err := png.Encode(&plain, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	number := func(values ...uint32) (out []byte) {
		for _, v := range values {
			out = binary.BigEndian.AppendUint32(out, v)
		}
		return out
	}
	for name, c := range map[string]struct {
		chunks []metadata.PNGChunk
		losses string
	}{
		"none":        {nil, ""},
		"sRGB's":      {[]metadata.PNGChunk{{Kind: "gAMA", Data: number(45455)}, {Kind: "cHRM", Data: number(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)}}, ""},
		"linear":      {[]metadata.PNGChunk{{Kind: "gAMA", Data: number(100000)}}, "the meaning of the colours is in gAMA,"},
		"sRGB beside": {[]metadata.PNGChunk{{Kind: "gAMA", Data: number(100000)}, {Kind: "sRGB", Data: []byte{0}}}, ""},
		"P3, PQ":      {[]metadata.PNGChunk{{Kind: "cICP", Data: []byte{12, 16, 0, 1}}}, "the meaning of the colours is in cICP,"},
		"primaries":   {[]metadata.PNGChunk{{Kind: "cHRM", Data: number(31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)}}, "the meaning of the colours is in cHRM,"},
	} {
		file, err := metadata.InsertPNG(plain.Bytes(), c.chunks, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantLosses(t, name, metadata.Losses(file, false), c.losses)
		wantLosses(t, name+" to PNG", metadata.Losses(file, true), "")
	}
}

// TestStack: a file with several pages says so, and the description by which programs count them is left out.
func TestStack(t *testing.T) {
	t.Parallel()
	stack := []byte("II*\x00\x08\x00\x00\x00")
	for _, subfile := range []uint32{0, 0, 1, 0} { // the third is a preview
		const size = 2 + 12 + 4
		next := uint32(len(stack) + size)
		if len(stack) > 3*size {
			next = 0
		}
		stack = append(stack, 1, 0, 254, 0, 4, 0, 1, 0, 0, 0)
		stack = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(stack, subfile), next)
	}
	wantLosses(t, "stack", metadata.Losses(stack, false), "the first of 3 pages was restored")
	for description, kept := range map[string]bool{"ImageJ=1.11a\nimages=3": false, `{"shape": [5, 64, 64]}`: false, "a garden": true} {
		tree := &tiff.Tree{}
		tree.Set(tiff.Bytes(tiff.TagDescription, 2, []byte(description+"\x00")))
		m := metadata.Read(tree.Encode())
		if got := bytes.Contains(m.EXIF, []byte(description)); got != kept {
			t.Errorf("%q kept: %v", description, got)
		}
	}
}
