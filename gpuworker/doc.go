// Package gpuworker does the work: it leases items from the queue, fetches their images,
// simulates or reads the measurements, restores batches of compatible items, scores and
// writes the results, and settles the leases.
//
// Three stages run side by side, so that the device never waits for a disk: while one batch
// is on the device, the next one is fetched and measured and the last one is scored and
// written. Leases are extended only as solver steps are made: a worker whose device hangs
// loses them, and another worker takes over.
//
// What happens to an item is decided in one place (settle.go) from one typed outcome. The
// result file is written last and create-only, so that its presence means that everything
// else is there; a second worker that finishes the same item changes nothing.
//
// Cancelling the context of Run drains the worker: it pulls nothing new, stops at the next
// chunk of steps, gives unfinished items back to the queue and returns.
package gpuworker
