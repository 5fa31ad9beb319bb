// Package queue carries work items from the coordinator to the workers, and their outcomes
// back, over NATS JetStream. It is the only package that knows NATS. The server is either
// one that runs elsewhere, or [Embedded] in the process, which opens no port.
//
// # The life of a message
//
// [Queue.Publish] stores an item in the stream DDIFF_WORK under the subject
// "ddiff.work.<campaign>.<class>", together with its id and the trace context of the caller.
// Items of one class can be restored in one batch. The stream keeps an item until it is
// acknowledged; the same id is refused with [ErrDuplicate] for ten minutes.
//
// [Queue.Lease] hands an item to one worker for Config.AckWait. The worker calls
// [Lease.Extend] while it makes progress, and then ends the lease in one of four ways:
//
//	Ack      done: the result is stored. The item leaves the stream.
//	Retry    it did not work, try again after a delay, which RetryDelay suggests.
//	Release  not worked on, because this worker stops: anybody may have it at once.
//	Bury     given up: the item goes to DDIFF_DEAD with its reason, and leaves the stream.
//
// A lease that is not extended ends by itself, and the item is handed out again: that is what
// happens when a worker dies. Each hand-out is an attempt, a release included. A worker that
// leases an item with [Lease.Exhausted] buries it unseen, since it has ended MaxAttempts
// workers before. The server stops handing an item out after MaxAttempts + 2, which leaves
// two workers the chance to do so.
//
// A slow worker may finish an item that has been handed out again. So an item can be worked
// on twice, and what it writes has to be the same and create-only. Its late Ack counts: it
// takes the item out of the stream for everybody.
//
// [Queue.PublishResult] tells the coordinator of an outcome through the stream DDIFF_RESULT,
// which [Queue.Results] reads from the start and follows. The order of a worker is: write the
// result to storage, publish it, Ack. After a crash between any two, the next attempt finds
// the result and goes on from there; a reader of results may therefore see an id twice.
//
// # What is true
//
// The work that is left is the manifest minus the results in storage. The queue only carries
// it and may be lost at any time. A coordinator that starts calls [Queue.Reset], which drops
// all that the streams hold of its campaign, and publishes what is left.
//
// Each Reset begins a new epoch, a growing number that is kept with the campaign's consumer on
// the server and travels with every item. It is part of the ids by which the server recognises
// duplicates, because the server remembers the ids of dropped items too, and would refuse to
// take them again.
//
// # What a setting costs
//
// The server acknowledges a publish when the operating system has the bytes, and syncs them
// to disk every two minutes: a killed process loses nothing, a power failure may lose the
// last two minutes, which a Reset brings back. EmbeddedConfig.SyncAlways syncs before each
// acknowledgement. It costs a disk flush per message, some hundred messages a second on a
// plain disk instead of many thousands, and is worth it only where restoring an item costs
// more than publishing it and nobody resets.
//
// AckWait is the time after which a dead worker's items go on. A live worker calls Extend
// several times within it, and each call is a message to the server. Replicas beyond 1 need a
// cluster of that many servers, and one more round trip between them per message.
package queue
