package report

import (
	"io"
	"slices"
	"strings"
)

func writeMarkdown(w io.Writer, s Summary) error {
	var b strings.Builder
	labels, figures := labelColumns(s.Varying), figureColumns(s)
	for i, name := range figures {
		figures[i] = escapeMarkdown(name)
	}
	b.WriteString("| " + strings.Join(slices.Concat(labels, figures), " | ") + " |\n|")
	b.WriteString(strings.Repeat(" :-- |", len(labels)) + strings.Repeat(" --: |", len(figures)) + "\n")
	marks := best(s)
	for i := range s.Rows {
		b.WriteString("|")
		for _, text := range labelCells(s.Varying, &s.Rows[i], "–") {
			b.WriteString(" " + escapeMarkdown(text) + " |")
		}
		for column, text := range figureCells(s, &s.Rows[i], "–") {
			text = escapeMarkdown(text)
			if marks[[2]int{i, column}] {
				text = "**" + text + "**"
			}
			b.WriteString(" " + text + " |")
		}
		b.WriteString("\n")
	}
	for _, note := range append([]string{sharedNote(s)}, notes(s)...) {
		b.WriteString("\n" + escapeMarkdown(note) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escapeMarkdown prevents names from ending a cell, opening a link or becoming HTML.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range printable(s) {
		if strings.ContainsRune("\\`*_|<>[]&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
