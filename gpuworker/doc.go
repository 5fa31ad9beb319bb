// Package gpuworker processes work items: it leases them from the queue, loads their images, simulates or loads the
// measurements, restores items in batches, scores and stores the results, and settles the leases.
//
// # Packages and files
//
// The parts that need no lease are packages of their own: job plans, measures, scores and encodes one item; guard limits stages and decides
// when a worker suspends itself; tuner measures batch sizes; enginecache keeps priors and operators on this machine; passport
// explains a restored image; fleet leases from the campaigns of a cluster. This package has [Config], [Worker] and what connects them:
//
//   - lease: single.go, assignment.go, leases.go (extension), alone.go (items that run alone)
//   - stages: prepare.go, solve.go with choose.go, finish.go; checkpoint.go; preflight.go; simulate.go
//   - end of an attempt: attempt.go (from the error of a stage to the acknowledgement), settle.go (its spans and logs), blame.go (starts
//     without an answer)
//   - failing environment: suspend.go, probe.go (its test)
//   - what others see: beacon.go (heartbeat), itemlog.go, tail.go
//
// # Dispatch
//
// A dispatcher leases items and supplies the store and the engine for them. [Single] serves a run in one process, a fleet a cluster. A
// campaign that this worker cannot process (no queue, unusable prior, newer version) is logged once and does not block the others.
//
// # Stages
//
// Three stages run concurrently, so that the device never waits for a disk: while one batch is on the device, the next
// batch is loaded and measured, and one or two previous ones are scored and stored. An item that already has a result is
// settled before its files are read. The campaign sets the batch size, or package tuner measures the best one. A batch that
// exceeds memory is halved, and no item fails because of it.
//
// The stages call a restorer. It computes with an engine, or waits ([Simulation]); the rest of the worker is the same.
//
// Leases are extended while a stage runs. A watchdog limits each stage, see [guard.Limits]: at its limit a stage is interrupted,
// the attempt at its items counts, the worker releases all other items and ends with [guard.ErrHung]. The limits of steps follow
// the measured durations, so that a slow machine is not taken for a hung one. The leases of a process that does not run
// expire, and another worker takes over.
//
// Every attempt at an item ends in one of six outcomes, and one function (attempt.go) maps it to the queue. result.json is
// written last and create-only: if it exists, the other files of the item exist too, and a second worker that finishes
// the same item changes nothing. A file of a lost attempt is replaced only by bytes that result.json names (finish.go).
//
// # Failures
//
// An item whose earlier attempt ended without an answer runs alone (alone.go), and its start is recorded in the store
// (blame.go): it is dead after it has ended workers that held nothing else. Failures of the environment use no attempt
// and suspend the worker until a test passes (package guard, suspend.go, probe.go). A result that may be the worker's fault gets a second
// opinion.
//
// Before the items of a campaign are published, one worker runs its preflight (preflight.go): prior, operators,
// compilation, memory, sources and store. A busy worker runs it between two steps of its batch.
//
// # Shutdown
//
// When the context of Run ends, the worker drains: it leases nothing more, stops after the current step,
// saves checkpoints of unfinished items, releases these items to the queue, and returns. A step that takes longer than
// [guard.Limits].Drain is interrupted; the checkpoint is then that of the step before. A campaign that is cancelled immediately
// interrupts the current step; its unfinished items are dropped without checkpoints.
package gpuworker
