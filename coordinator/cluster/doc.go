// Package cluster is the coordinator as a long-running process: it takes campaigns from the
// board, shards them into JetStream work items, follows their outcomes, and tells how they
// stand. Any number of coordinators run side by side; one leads, see [Service].
//
// # What is kept where
//
// The board (a JetStream KV bucket) has a small record for each campaign, written by
// compare-and-swap: what people want of it, its phase, and how far its manifest is published.
// Storage has the rest: the record again, the manifest in windows (package shard), and the
// results. The result stream has the outcomes since the campaign began. The ledger, which
// knows the state of every item, lies in the leader's memory alone and is made anew from
// windows and outcomes by whoever leads next.
//
// Losing the queue costs time only. When the streams lose items, or are deleted, the leader
// notices that the queue holds fewer items than the ledger misses, compares windows with
// results in storage, and publishes the difference. When the board is lost as well, the
// records come back from storage. Outcomes "failed" and "dead" of workers are in the streams
// only: without these the items are tried again.
//
// # The phases of a campaign
//
//	queued ──► preflight ──► canary ──► running ──► finished
//	              │             │          ▲
//	              ▼             ▼          ▼
//	            rejected ◄──────┘        paused
//
// A window is written to storage before its first item is published, and the cursor on the
// board moves only after its last one. A coordinator that dies in between leaves one window
// that is published in part: the next one looks in storage which of its items have a result,
// and publishes the others; the queue drops those that it has already.
package cluster
