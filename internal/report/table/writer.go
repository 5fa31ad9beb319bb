package table

import (
	"io"
	"text/tabwriter"
)

// NewWriter returns a writer that aligns the cells of lines, which tabs separate, to the left. It writes nothing before Flush.
func NewWriter(to io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(to, 0, 0, 2, ' ', 0) }
