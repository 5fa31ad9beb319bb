package report

import (
	"io"
	"strings"
)

func writeMarkdown(w io.Writer, s Summary) error {
	var b strings.Builder
	header := tableHeader()
	b.WriteString("| " + strings.Join(header, " | ") + " |\n|")
	for i := range header {
		if i < 2 {
			b.WriteString(" :-- |")
		} else {
			b.WriteString(" --: |")
		}
	}
	b.WriteString("\n")
	marks := best(s)
	for i, r := range s.Rows {
		b.WriteString("|")
		for column, text := range tableCells(r, s.Oracle, "–") {
			text = escapeMarkdown(text)
			if marks[[2]int{i, column}] {
				text = "**" + text + "**"
			}
			b.WriteString(" " + text + " |")
		}
		b.WriteString("\n")
	}
	for _, note := range notes(s) {
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
