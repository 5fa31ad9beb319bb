package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"ddiff/internal/report/sweep"
)

// Sizes of text, in points.
const (
	labelSize = 8.0
	tickSize  = 7.0
)

// style has the colours of a dark screen. The elements have those of paper, which programs without media queries draw, too.
const style = `<style>:root{color-scheme:light dark}@media screen and (prefers-color-scheme:dark){` +
	`.paper{fill:#101214}.ink{color:#e9ebee}.grey{color:#8b949e}` +
	`.s0{color:#5aaef0}.s1{color:#f0874a}.s2{color:#35c79a}.s3{color:#dc9cc4}.s4{color:#f0b840}.s5{color:#a4daf8}.s6{color:#e9ebee}}</style>`

// ink and grey are the attributes of texts and axes, and of lines of reference.
const (
	ink  = `class="ink" color="#222222"`
	grey = `class="grey" color="#888888"`
)

// palette has the colours of Okabe and Ito, without yellow, which is faint on white: blue, vermillion, bluish green, reddish purple, orange, sky
// blue, black.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

var dashes = []string{"", "4 2", "1 1.5", "5 1.5 1 1.5", "2 2"}

// MaxSeries is the number of series that differ in colour, marker or dashes. Further series repeat the first.
const MaxSeries = 14

// colours are the attributes of the series with this number.
func colours(n int) string {
	n %= len(palette)
	return fmt.Sprintf(`class="s%d" color=%q`, n, palette[n])
}

// dashed is the attribute of the line of the series with this number.
func dashed(n int) string {
	if d := dashes[n%len(dashes)]; d != "" {
		return ` stroke-dasharray="` + d + `"`
	}
	return ""
}

// marker is the outline of the marker of the series with this number.
func marker(n int, x, y, r float64) string {
	switch n % 4 {
	case 1:
		r *= 0.9
		return path('M', x-r, y-r) + path('h', 2*r) + path('v', 2*r) + path('h', -2*r) + "z"
	case 2:
		r *= 1.25
		return path('M', x, y-r) + path('l', 0.87*r, 1.5*r) + path('h', -1.74*r) + "z"
	case 3:
		r *= 1.3
		return path('M', x, y-r) + path('l', r, r) + path('l', -r, r) + path('l', -r, -r) + "z"
	}
	return path('M', x-r, y) + path('a', r, r, 0, 1, 0, 2*r, 0) + path('a', r, r, 0, 1, 0, -2*r, 0) + "z"
}

// path is a command of a path with its numbers.
func path(command byte, numbers ...float64) string {
	out := []byte{command}
	for i, v := range numbers {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(out, number(v)...)
	}
	return string(out)
}

// number has at most two decimals.
func number(v float64) string {
	s := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// document is the text of an SVG.
type document struct{ bytes.Buffer }

// open begins a group of elements with these attributes, which end ends.
func (d *document) open(attributes string) { fmt.Fprintf(d, "<g %s>\n", attributes) }

func (d *document) end() { d.WriteString("</g>\n") }

// line draws the outline of a path.
func (d *document) line(path string, width float64, more string) {
	if path != "" {
		fmt.Fprintf(d, "<path d=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"%g\"%s/>\n", path, width, more)
	}
}

// area fills a path.
func (d *document) area(path, more string) {
	if path != "" {
		fmt.Fprintf(d, "<path d=\"%s\" fill=\"currentColor\"%s/>\n", path, more)
	}
}

// text writes a text. anchor is the part of it that is at x: start, middle or end. y is that of its base line.
func (d *document) text(x, y float64, anchor, text, more string) {
	if text != "" {
		fmt.Fprintf(d, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\" fill=\"currentColor\"%s>%s</text>\n", number(x), number(y), anchor, more, escape(text))
	}
}

// escape prepares a text for XML.
func escape(s string) string {
	var out bytes.Buffer
	xml.EscapeText(&out, []byte(sweep.Printable(s))) //nolint:errcheck // a buffer accepts everything
	return out.String()
}

// widthOf is the width of a text of a size in DejaVu Sans, or little more. No other font that programs take for the wanted ones is as wide.
func widthOf(s string, size float64) float64 {
	width := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("ijlI'", r):
			width += 0.3
		case strings.ContainsRune(" !,./:;[\\]ft()-r|", r):
			width += 0.42
		case strings.ContainsRune("mMwW%@‖…", r) || r >= 0x2e80 || 0x1100 <= r && r < 0x2000:
			width++
		case 'A' <= r && r <= 'Z' || strings.ContainsRune("+−=<>~#&", r):
			width += 0.84
		default:
			width += 0.64
		}
	}
	return width * size
}

// shorten replaces what no file can hold, and cuts the text to the width.
func shorten(s string, size, width float64) string {
	s = sweep.Printable(s)
	for cut := []rune(s); len(cut) > 0 && widthOf(s, size) > width; {
		cut = cut[:len(cut)-1]
		s = strings.TrimSpace(string(cut)) + "…"
	}
	return s
}

// fit shortens a text to the space between two places, and returns its middle there, at best the wanted one.
func fit(s string, size, middle, low, high float64) (text string, at float64) {
	text = shorten(s, size, high-low)
	half := widthOf(text, size) / 2
	return text, min(max(middle, low+half), high-half)
}
