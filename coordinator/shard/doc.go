// Package shard turns the dataset of a campaign into work items, window by window.
//
// A [Sharder] streams the rows, reads of each what its identity needs (digests and sizes),
// and expands it into items. A [Window] is a run of rows with all their items, in the order
// in which they are best worked on; windows are numbered from 0, and the same dataset gives
// the same windows again, so that an interrupted sharding goes on where it was. Memory does
// not grow with the number of rows.
//
// A window is stored as gzipped JSON lines: its [Header], its items, and a failed result for
// each item that cannot be restored. What is stored is the campaign's manifest from then on,
// also when the dataset changes.
package shard
