// Package report turns the results of a campaign into tables, pictures and a page.
//
// [Write] stores these files beside the items:
//
//	results.csv        one row per item of the manifest
//	summary.json       means over images, per problem and approach, and paired comparisons
//	summary.md         the same as a Markdown table
//	mosaic.png         a selection of images of all tasks
//	sheets/<task>.png  a contact sheet: truth, measurement, restored image
//	figures/           statistical figures as SVG, each with its data as CSV; captions.md has their captions
//	index.html         one page with tables, pictures and curves; it opens from disk
//	SHA256SUMS         digests of these files
//
// All scores depend on the rule that combines the runs of a measurement, so each output names the rule.
// [selection.BestPSNR] uses the ground truth: its figures have an asterisk and a footnote and are never ranked.
//
// [WriteFigures] writes the figures alone. The packages below are used by themselves, too:
//
//	result      reads the results of any number of outputs, and selects among them
//	aggregate   computes the summary, as plain values
//	table       writes it, and tables of all items
//	published   compares it with a publication
//	comparison  compares two sets of results
//
// Imports point down: statistic and sweep know no other of these packages, selection and result only them, entry
// sorts results, aggregate has their means, table, figure, sheet, published and comparison read those, page all of them.
// This package only calls them in turn; a file of a report is one call in write.
//
// The output depends on the results only, not on their order, the worker, the batch or the clock.
//
// # Memory
//
// A report holds its results in memory, some 1.4 KB each with results.csv. The page lists at most 50,000 items, about 150 bytes
// each; contact sheets show a bounded selection. The figures draw a bounded sample of the measurements of a problem and read a
// bounded number of traces.
package report
