// Package gpuworker does the work: it leases items from the queue, fetches their images,
// simulates or reads the measurements, restores batches of compatible items, scores and
// writes the results, and settles the leases.
//
// # Where work comes from
//
// A dispatcher hands out items, together with where their results go and what solves them.
// [Single] is that of a run in one process. [Fleet] is that of a cluster: it watches the
// campaigns on the board and pulls from those that may be worked on, the highest class that
// has work first, and within a class in turns by weight. A campaign's prior comes from the
// cluster's store, and is kept on the disk and in memory by its digest ([EngineCache]). What a
// campaign lacks (its queue, its prior, a version of this program that can read it) is said
// once in the log, and does not keep the worker from the others.
//
// # The way of an item
//
// Three stages run side by side, so that the device never waits for a disk: while one batch
// is on the device, the next one is fetched and measured and the last one is scored and
// written. An item that has a result is settled before anything is fetched. How many items
// are solved together is the campaign's choice, or found on its first items and remembered
// ([Tuner]); a batch that does not fit into memory is halved at once, and no item fails for it.
//
// Leases are extended as solver steps are made, and while another stage is under way that has
// not taken too long: a worker whose device hangs loses them, and another worker takes over.
//
// What happens to an item is decided in one place (settle.go) from one typed outcome. The
// result file is written last and create-only, so that its presence means that everything
// else is there; a second worker that finishes the same item changes nothing.
//
// Before the items of a campaign are handed out, one worker checks it (preflight.go): its
// prior, its operators, that what it needs compiles and fits, its sources and its store.
//
// # How it ends
//
// Cancelling the context of Run drains the worker: it pulls nothing new, stops at the next
// chunk of steps, keeps the state of what is half done, gives unfinished items back to the
// queue and returns. A campaign that is cancelled at once stops at the next chunk, too; of its
// unfinished items nothing is kept.
package gpuworker
