// Package archive moves ended campaigns from the board to the store, and back.
//
// The store has a copy of each record. An archived campaign has only that copy, and the line of its entry in the index (package index).
// The [Archiver] of the leader also answers the requests with which commands without access to the store reach it: [Recall],
// [Archive], [List] and [Logs]. A new request is a verb, a case of Archiver.execute, and a function that sends it.
package archive
