package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
)

const hostile = "</text><script>alert(1)</script>\"'><image href=\"http://x/\"/>&\x00\x1b\u2028\xff\nσ"

// hostileChart has every kind of series, undefined values and hostile texts.
func hostileChart() *Chart {
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

func TestSameBytes(t *testing.T) {
	t.Parallel()
	svg := hostileChart().SVG()
	if again := hostileChart().SVG(); !bytes.Equal(again, svg) {
		t.Error("a second SVG differs")
	}
}

func TestSVGIsInert(t *testing.T) {
	t.Parallel()
	svg := hostileChart().SVG()
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
			case "svg", "title", "desc", "style", "rect", "g", "path", "text":
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
	if !regexp.MustCompile(`<svg [^>]*width="174\.00mm" height="\d+\.\d\dmm" viewBox="0 0 [0-9.]+ [0-9.]+" role="img" `).Match(svg) {
		t.Errorf("header %.300s", svg)
	}
	if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
		t.Error("a coordinate is NaN or infinite")
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
			svg := c.SVG()
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
		seen[colours(n)+dashed(n)] = true
		seen[colours(n)+marker(n, 0, 0, 1)] = true
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
		most   float64
		want   string
	}{
		{Axis{}, []float64{20, 30}, 8, "20 22 24 26 28 30"},
		{Axis{}, []float64{20, 30}, 3, "20 25 30"},
		{Axis{}, []float64{-0.3, 0.3}, 8, "−0.3 −0.2 −0.1 0 0.1 0.2 0.3"},
		{Axis{Log: true}, []float64{0.3, 4000}, 8, "1 10 100 1000"},
		{Axis{Log: true}, []float64{15, 60}, 8, "20 50"},
		{Axis{Ticks: []float64{0.02, 0.05, 0.1}}, []float64{0.02, 0.1}, 2, "0.02 0.05 0.1"},
	} {
		var labels []string
		for _, tick := range tt.axis.ticks(tt.axis.extent(tt.values), tt.most) {
			if tick.label != "" {
				labels = append(labels, tick.label)
			}
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("%v: ticks %q, want %q", tt.values, got, tt.want)
		}
	}
}

// Of labels without room the minor ones go first.
func TestLabelsHaveRoom(t *testing.T) {
	t.Parallel()
	ticks := thin([]tick{{1, "1", false}, {2, "2", true}, {5, "5", true}, {5.5, "5.5", false}, {6, "6", false}},
		func(t tick) float64 { return t.at }, func(tick) float64 { return 1 })
	var labels []string
	for _, t := range ticks {
		labels = append(labels, t.label)
	}
	if got := strings.Join(labels, ","); got != "1,2,,5.5," {
		t.Errorf("labels %s", got)
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	long, short := shorten(strings.Repeat("settings=1 ", 40), tickSize, 100), shorten("short", tickSize, 100)
	if !strings.HasSuffix(long, "…") || widthOf(long, tickSize) > 100 || short != "short" {
		t.Errorf("%q, %v wide; %q", long, widthOf(long, tickSize), short)
	}
}
