package chart

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
)

const hostile = "</text><script>alert(1)</script>\"'><image href=\"http://x/\"/>&\x00\x1b\u2028\xff\nσ"

// sample has every kind of series, undefined values and hostile texts.
func sample() *Chart {
	points := func(f func(x float64) float64) []Point {
		var out []Point
		for x := 1.0; x <= 20; x++ {
			out = append(out, Point{X: x, Y: f(x), Low: f(x) * 0.8, High: f(x) * 1.2})
		}
		return out
	}
	gaps := points(math.Sqrt)
	gaps[3].Y, gaps[7].X, gaps[9].Low = math.NaN(), math.Inf(1), math.NaN()
	return &Chart{
		Title: hostile, Description: hostile, Width: TwoColumns, Columns: 3,
		Panels: []Panel{
			{Title: hostile, X: Axis{Label: hostile}, Y: Axis{Label: hostile, Log: true}, Levels: []float64{3}, Series: []Series{
				{Label: hostile, Kind: Curve, Points: points(math.Exp)}, {Label: "b", Kind: Curve, Points: gaps},
			}},
			{X: Axis{Ticks: []float64{1, 5, 20}}, Dodge: true, Series: []Series{
				{Label: "b", Kind: Markers, Points: gaps}, {Label: "c", Kind: Markers, Points: points(math.Log)},
			}},
			{Diagonal: true, Series: []Series{{Kind: Dots, Points: gaps}}},
			{Series: []Series{{Label: "d", Kind: Dots, Points: points(math.Abs)}}},
			{Title: "nothing"},
		},
	}
}

// files returns both files of a chart.
func files(t *testing.T, c *Chart) (svg, image []byte) {
	t.Helper()
	svg, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if image, err = c.PNG(); err != nil {
		t.Fatal(err)
	}
	return svg, image
}

func TestSameBytes(t *testing.T) {
	t.Parallel()
	svg, image := files(t, sample())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			again, err := sample().SVG()
			if err != nil || !bytes.Equal(again, svg) {
				t.Error("a second SVG differs", err)
			}
			picture, err := sample().PNG()
			if err != nil || !bytes.Equal(picture, image) {
				t.Error("a second PNG differs", err)
			}
		})
	}
	group.Wait()
}

// TestPDF reads the page's size, the texts, which are UTF-16 in streams, and compares a second document.
func TestPDF(t *testing.T) {
	t.Parallel()
	c := sample()
	c.Panels[1].X.Label, c.Panels[1].Y.Label = "σ², γ₀ − 1", "smile \U0001F600"
	pdf, err := c.PDF()
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.PDF()
	if err != nil || !bytes.Equal(again, pdf) {
		t.Error("a second PDF differs", err)
	}
	if width := fmt.Sprintf("/MediaBox [0 0 %.2f ", 174/25.4*72); !bytes.Contains(pdf, []byte(width)) {
		t.Errorf("no %s", width)
	}
	var texts []byte
	for _, part := range bytes.Split(pdf, []byte("stream\n"))[1:] {
		if z, err := zlib.NewReader(bytes.NewReader(part)); err == nil {
			plain, _ := io.ReadAll(z) // bytes follow its end
			texts = append(texts, plain...)
		}
	}
	for _, want := range []string{"σ², γ₀ − 1", "smile \uFFFD", "nothing"} {
		var coded []byte
		for _, unit := range utf16.Encode([]rune(want)) {
			coded = binary.BigEndian.AppendUint16(coded, unit)
		}
		if !bytes.Contains(texts, coded) {
			t.Errorf("the text %q is missing", want)
		}
	}
	// A band has no outline: no line has the colour black, that of a new page.
	colour := ""
	for line := range strings.Lines(string(texts)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasSuffix(line, " G"), strings.HasSuffix(line, " RG"):
			colour = line
		case line == "S" && colour == "0.000 G":
			t.Fatal("a line is black")
		}
	}
	if bytes.Contains(texts, []byte("NaN")) || bytes.Contains(texts, []byte("Inf")) {
		t.Error("a coordinate is NaN or infinite")
	}
}

func TestSVGIsInert(t *testing.T) {
	t.Parallel()
	svg, _ := files(t, sample())
	var elements []string
	texts := make(map[string]bool)
	element := ""
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			elements = append(elements, element)
			switch element {
			case "svg", "title", "desc", "g", "path", "text":
			default:
				t.Errorf("element %s", element)
			}
			for _, a := range token.Attr {
				if a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "url(") {
					t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			texts[element+" "+string(token)] = true
		}
	}
	if fmt.Sprint(elements[:3]) != "[svg title desc]" {
		t.Errorf("the document begins with %v", elements[:3])
	}
	want := strings.NewReplacer("\x00", "?", "\x1b", "?", "\u2028", "?", "\xff", "\uFFFD", "\n", "?").Replace(hostile)
	for _, of := range []string{"title", "desc", "text"} {
		if !texts[of+" "+want] {
			t.Errorf("%s does not hold the text as it is", of)
		}
	}
	if !regexp.MustCompile(`<svg [^>]*width="174\.00mm" height="\d+\.\d\dmm" viewBox="0 0 [0-9.]+ [0-9.]+" role="img">`).Match(svg) {
		t.Errorf("header %.300s", svg)
	}
	if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
		t.Error("a coordinate is NaN or infinite")
	}
}

// The transform that turns the axis upside down must have the height of the view box.
func TestSVGHeightsAgree(t *testing.T) {
	t.Parallel()
	svg, _ := files(t, sample())
	m := regexp.MustCompile(`viewBox="0 0 [0-9.]+ ([0-9.]+)"(?s:.*?)translate\(0, -([0-9.]+)\)`).FindSubmatch(svg)
	if len(m) != 3 || string(m[1]) != string(m[2]) {
		t.Errorf("%q", m)
	}
}

func TestPNGSize(t *testing.T) {
	t.Parallel()
	for _, width := range []Width{OneColumn, TwoColumns} {
		c := sample()
		c.Width = width
		_, data := files(t, c)
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := float64(img.Bounds().Dx()), float64(width)/25.4*Resolution; !(math.Abs(got-want) <= 1) {
			t.Errorf("width %g: %g pixels, want %g", float64(width), got, want)
		}
		at := bytes.Index(data, []byte("pHYs"))
		if at < 0 || binary.BigEndian.Uint32(data[at+4:]) != 11811 || data[at+12] != 1 {
			t.Error("the PNG does not state 300 dots per inch")
		}
	}
}

func TestUnusualPanels(t *testing.T) {
	t.Parallel()
	for name, series := range map[string][]Series{
		"no series":   nil,
		"no points":   {{Label: "a", Kind: Curve}},
		"NaN only":    {{Label: "a", Kind: Markers, Points: []Point{At(math.NaN(), 1), At(1, math.Inf(-1))}}},
		"one point":   {{Label: "a", Kind: Markers, Points: []Point{At(1, 1)}}},
		"huge values": {{Label: "a", Kind: Curve, Points: []Point{At(1, -largest), At(2, largest), At(3, math.MaxFloat64)}}},
		"tiny values": {{Label: "a", Kind: Curve, Points: []Point{At(1, 5e-324), At(2, 1e-320)}}},
	} {
		for _, log := range []bool{false, true} {
			c := &Chart{Width: OneColumn, Panels: []Panel{{Y: Axis{Log: log}, X: Axis{Log: log}, Series: series}}}
			svg, _ := files(t, c)
			if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
				t.Errorf("%s: a coordinate is NaN or infinite", name)
			}
		}
	}
}

func TestStylesDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for n := range MaxSeries {
		s := styleOf(n)
		seen[fmt.Sprint(s.line.Color, s.line.Dashes)] = true
		seen[fmt.Sprintf("%v %T", s.line.Color, s.glyph.Shape)] = true
	}
	if len(seen) != 2*MaxSeries {
		t.Errorf("%d of %d appearances differ", len(seen), 2*MaxSeries)
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{}, []float64{20, 30}, "20 22 24 26 28 30"},
		{Axis{}, []float64{-0.3, 0.3}, "−0.3 −0.2 −0.1 0 0.1 0.2 0.3"},
		{Axis{Log: true}, []float64{0.3, 4000}, "1 10 100 1000"},
		{Axis{Log: true}, []float64{15, 60}, "20 50"},
		{Axis{Ticks: []float64{0.02, 0.05, 0.1}}, []float64{0.02, 0.1}, "0.02 0.05 0.1"},
	} {
		var labels []string
		for _, tick := range tt.axis.ticks(tt.axis.extent(tt.values)) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("%v: ticks %q, want %q", tt.values, got, tt.want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	style := textStyle(tickSize, false)
	long, short := strings.Repeat("settings=1 ", 40), "short"
	shorten(&long, style, 100)
	shorten(&short, style, 100)
	if !strings.HasSuffix(long, "…") || !(style.Width(long) <= 100) || short != "short" {
		t.Errorf("%q, %v wide; %q", long, style.Width(long), short)
	}
}
