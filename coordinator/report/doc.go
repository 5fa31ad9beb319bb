// Package report turns the results of a campaign into what a person looks at afterwards.
//
// [Write] puts these files beside the items, through the same store:
//
//	results.csv        one row per item of the manifest
//	summary.json       the means over images, per task and method, and paired comparisons
//	summary.md         the same as a Markdown table
//	sheets/<task>.png  a contact sheet: truth, measurement, restored image
//	index.html         one page that shows all of it and opens from disk
//
// Every score depends on how the runs of one measurement were combined, so the rule is part
// of each output. [RuleBestPSNR] looks at the ground truth; its figures carry an asterisk
// and a footnote and are never ranked.
//
// The output depends on the results only: not on their order, nor on the worker, the batch
// or the clock.
package report
