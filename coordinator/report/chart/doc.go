// Package chart draws statistical charts for print as SVG, PDF and PNG.
//
// A [Chart] is plain data: panels in a grid, each with two axes and series of points, and one legend for all panels.
// [Chart.SVG], [Chart.PDF] and [Chart.PNG] return the bytes of a file. Equal charts give equal bytes: no file has the time, a random id
// or the name of the machine.
//
// # Print
//
// Sizes are in millimetres: a chart is [OneColumn] or [TwoColumns] wide, its text has 7 to 8 points, its lines 1 point. The
// SVG and the PDF state their size, the PNG its resolution, so that a document includes both at the intended size.
//
// # Colours
//
// The colours are those of Okabe and Ito without yellow, which readers with any colour vision can distinguish on white. Each
// series also has a marker and a dash pattern of its own, for print without colour.
//
// # Text
//
// The text of an SVG is text: it can be searched, and edited in a drawing program. Its font is Liberation Sans, or Arial or
// Helvetica, which take the same space, where Liberation is not installed. The file contains no script and refers to no other
// file. Its title and description elements serve screen readers. The text of a PDF is text, too; its font is inside.
package chart
