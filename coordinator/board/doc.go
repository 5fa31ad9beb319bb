// Package board is the client of the cluster's board: it submits, reads, lists and controls campaigns.
//
// The board (a JetStream KV bucket) has one record per campaign, which all writers change by compare-and-swap, one
// status per campaign, and one beat per worker. The store has a copy of each record. The package owns the reading and
// writing of these records; package manifest has their fields. A new verb of users is a function here that changes the
// record with [Update].
package board
