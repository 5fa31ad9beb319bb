// Package index has the index of all campaigns in the store: which are on the board, in the archive, or being deleted, also
// if the board is lost.
//
// An entry is an empty object whose key has all its fields. Entries are only added, and the newest of a campaign counts. A
// recall and a deletion exclude each other by the order of their writes and reads, see [Index.Open]. The package owns the
// keys below campaigns/.index/; a new field of an archived campaign is a field of [Row] at the end of the key.
package index
