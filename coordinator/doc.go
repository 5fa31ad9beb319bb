// Package coordinator runs campaigns: it reads a dataset in windows, publishes the items as queue messages, settles
// their outcomes in a ledger, and writes the report.
//
// There are two ways in. A [Service] is a long-running process that runs all campaigns of a board; any number of
// services run side by side and one leads. A [Run] runs one campaign in the process of its only worker, for `ddiff
// run`. Both use the same runner; what differs is a value of type place (place.go, run.go).
//
// A runner (runner.go) takes one campaign through its phases. It joins these parts, which do not know the runner:
//
//	part      type       files                    state
//	record    record     record.go                the campaign's record on the board, and its writes
//	starts               starts.go                starts that ended a coordinator
//	models    models     prior.go, operator.go    prior and operator files
//	reader    reader     reader.go                the next window of the dataset, and why it cannot be read
//	windows   windows    windows.go               the windows in storage
//	outcomes  outcomes   outcomes.go, ledger.go   the state of each item, and the outcomes that change it
//	work      work       work.go, queue_check.go  the queue, and whether it lacks items
//	results   results    results.go, report.go    the stored results, and their report
//	trial     trial      preflight.go             preflight and canary
//	faults    faults     fault.go                 reports of workers whose environment fails
//
// next.go decides: from record, windows, ledger and trial, a standing gives the next action, whether a window is needed, and how many
// items the queue must hold. phases.go performs the actions. A new phase is a case of standing.next and an action of runner.advance; a new
// manifest.Command, which the leader executes, is a case of runner.executeVerb (commands.go); the way of a window from the reader to the
// queue is publish.go.
//
// An item is settled when the ledger has its final state: by an outcome of a worker (outcomes.enter), or by a stored result
// (outcomes.settleStored, place.settleListed). The first final state stays, except that a stored result replaces a failure.
//
// Packages below have the board's client (board), the state of the items (ledger), the index of all campaigns (index), the
// archive (archive), deletions (gc), and the watch over store, streams and workers (health). None of them imports this one.
//
// # Where state lives
//
// The board (a JetStream KV bucket) has one small record per campaign, changed by compare-and-swap: what people want,
// the phase, and the number of published windows. The store has a copy of the record, the manifest in windows (package
// shard), the results, and parts of the ledger. The result stream has the newest outcomes. The ledger has the state of
// every item in the leader's memory. The leader stores it in parts, and then removes their outcomes from the stream; the
// next leader reads the parts, the windows that no part has, and the rest of the stream.
//
// Losing the queue costs only time. If the queue seems to hold fewer items than the ledger has pending, the leader counts
// the stream's messages, reads all outcomes, and lists the stored results. Only if items are still missing, it replaces
// the queue. When the board is lost too, the records are restored from the store. Outcomes "failed" and "dead" are only
// in the parts of the ledger and in the result stream; without them the workers try those items again.
//
// Each coordinator checks the store and publishes the result on the board. A leader that cannot use the store resigns if
// another coordinator can, and otherwise waits.
//
// # The archive
//
// Some time after its end, a campaign leaves the board, and only the store has its record (package archive); any verb returns it
// (archive.Recall). An index in the store, of empty objects whose keys hold the data, lists all campaigns. A gc.Cleaner deletes
// campaigns and garbage; it and a recall exclude each other by the order of their writes to the index.
//
// # The phases of a campaign
//
//	queued ──► preflight ──► canary ──► running ──► finished
//	              │             │          ▲
//	              ▼             ▼          ▼
//	            rejected ◄──────┘        paused
//
// A phase follows from the record, the stored windows and rounds, and the outcomes. Every step of a runner is idempotent,
// and the write of the new phase comes last, so that the next leader repeats a step that a crash interrupted. A campaign
// ends as the record asks at that moment: the write is a compare-and-swap on the wanted state and the pending commands.
//
// A window is stored before its first item is published, and the record counts it only after its last one. If a
// coordinator dies in between, one window is partly published. The next leader looks up the stored results of that
// window and publishes the other items; the queue drops duplicates.
//
// A [Run] skips preflight and canary, and its windows are scratch: every run reads the dataset again, so that an output
// can be reused with a larger dataset or other settings. It looks up the stored result of every item before it
// publishes the item.
package coordinator
