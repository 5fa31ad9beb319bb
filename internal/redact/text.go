package redact

import (
	"regexp"
	"strings"
)

// begin matches the begin of an address inside a text, and stop what follows it there.
var (
	begin = regexp.MustCompile(`(?:(?:tar|parquet)\+)?[A-Za-z][A-Za-z0-9.-]*://`)
	stop  = regexp.MustCompile(`[\s"'<>]|,(?:(?:tar|parquet)\+)?[A-Za-z][A-Za-z0-9.-]*://`)
)

// Text returns a text without the secrets of the addresses in it, also of quoted ones. A space ends an address, except of one in quotes and of a
// text that begins with one.
func Text(text string) string {
	var out strings.Builder
	text = Address(text)
	for {
		at := begin.FindStringIndex(text)
		if at == nil {
			return out.String() + text
		}
		out.WriteString(text[:at[0]])
		quoted := at[0] > 0 && text[at[0]-1] == '"'
		text = text[at[0]:]
		end := len(text)
		if quoted && strings.Contains(text, `"`) {
			end = strings.Index(text, `"`)
		} else if to := stop.FindStringIndex(text); to != nil {
			end = to[0]
		}
		out.WriteString(Address(text[:end]))
		text = text[end:]
	}
}
