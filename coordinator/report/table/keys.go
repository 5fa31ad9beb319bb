package table

// The keys of a report's tables.
const (
	KeyCSV             = "results.csv"
	KeySummaryJSON     = "summary.json"
	KeySummaryMarkdown = "summary.md"
)
