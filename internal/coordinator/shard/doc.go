// Package shard turns the dataset of a campaign into work items, window by window.
//
// A [Sharder] streams the rows, reads the digests and sizes of their files, and expands them into items. A [Window] holds
// consecutive rows with their items, sorted by task. Windows are numbered from 0 and the same dataset gives the same windows,
// so an interrupted sharding resumes. Memory does not grow with the number of rows.
//
// A window has a digest of all rows up to its end. If they differ when sharding resumes, the sharder searches for the last
// row that was read ([Position], anchor.go). It either resumes after that row and describes the change in the next window,
// or reads nothing (ErrMoved). No row is lost or repeated without a message.
//
// An unreadable file is a failed row. A source that does not answer, or refuses the process's keys, is not: the sharder
// calls Config.Wait until the source answers (source.go).
//
// A window is stored as gzipped JSON lines: its [Header], its items, and a failed result for each item that cannot be
// restored. The stored windows are the campaign's manifest, even if the dataset changes later. A [manifest.Catalogue] holds the methods
// and operators that campaigns can name.
package shard
