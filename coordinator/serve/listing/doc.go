// Package listing has the items of one campaign in memory, and filters, sorts and pages them.
//
// A row takes some 150 bytes and its name. The package reads nothing: its user enters items, states and results. A further metric to sort by is
// one line of metrics.
package listing
