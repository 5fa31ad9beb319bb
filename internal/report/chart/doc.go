// Package chart draws statistical charts as SVG.
//
// A [Chart] is plain data: panels in a grid, each with two axes and series of points, and one legend for all panels.
// [Chart.SVG] returns the bytes of a file. Equal charts give equal bytes: no file has the time, a random id or the name of the machine.
//
// # Sizes
//
// A chart is [OneColumn] or [TwoColumns] wide, in millimetres. Its text has 7 to 8 points, its lines 1 point.
//
// # Colours
//
// The colours are those of Okabe and Ito without yellow, which readers with any colour vision can distinguish on white, and lighter ones on
// the screen of a reader who prefers dark pages. Each series also has a marker and a dash pattern of its own, for print without colour.
//
// # Text
//
// Text is text: it can be selected, searched, and edited in a drawing program. Its font is Liberation Sans, or Arial or Helvetica, which take
// the same space. Where a program has none of them, its own font has room. The file contains no script and refers to no other file. Its title and description elements serve screen readers.
package chart
