// Package archive moves ended campaigns from the board to the store, and back.
//
// The store has a copy of each record. An archived campaign has only that copy, and the line of its entry in the index (package index).
// The [Archiver] of the leader also answers the requests of other coordinators: [Recall] and [Archive]. [List] and [Logs] read the store.
package archive
