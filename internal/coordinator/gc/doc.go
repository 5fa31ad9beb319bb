// Package gc deletes data from the store of a cluster: campaigns that have ended, and what crashes and deletions have left.
//
// A [Cleaner] needs no leader, except to archive a campaign of the board. It and a recall exclude each other by the order of
// their writes to the index, see package index. The package owns the list of the keys that may be deleted: a new file beside
// the items of an output needs its form in outputKeys. Tests with whole clusters are in package coordinator.
package gc
