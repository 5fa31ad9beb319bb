// Package queue carries work items from the coordinator to the workers, and their outcomes
// back, over NATS JetStream; and it keeps the few records that coordinators, workers and
// people share. It is the only package that knows NATS. The server is one or several that run
// elsewhere, to which [Connect] leads, or [Embedded] in the process, which opens no port.
//
// # The life of a message
//
// [Queue.Publish] stores an item in the stream DDIFF_WORK under the subject
// "ddiff.work.<campaign>.<class>", together with its id and the trace context of the caller.
// Items of one class can be restored in one batch. The stream keeps an item until it is
// acknowledged; the same id is refused with [ErrDuplicate] for two minutes, unless it comes in
// another [Work.Round].
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
// happens when a worker dies. Each hand-out is an attempt, unless the item is released: then
// a copy takes its place that remembers the attempts before. A worker that leases an item with
// [Lease.Exhausted] buries it unseen, since it has ended MaxAttempts workers before. The
// server stops handing an item out after MaxAttempts + 2, which leaves two workers the chance
// to do so. Should they die too, [Sweep] buries it.
//
// A slow worker may finish an item that has been handed out again. So an item can be worked
// on twice, and what it writes has to be the same and create-only. Its late Ack counts: it
// takes the item out of the stream for everybody.
//
// [Lease.PublishResult] tells the coordinator of an outcome through the stream DDIFF_RESULT,
// which [Queue.Results] reads from the start and follows. The order of a worker is: write the
// result to storage, publish it, Ack. After a crash between any two, the next attempt finds
// the result and goes on from there; a reader of results may therefore see an id twice.
//
// # Who makes what
//
// [Setup] makes the streams and the [Board]; the coordinator calls it, and [Open] for each
// campaign, which makes the campaign's consumer. A worker calls [Attach], which makes nothing
// and takes over the coordinator's settings. One of several coordinators leads: [Election].
//
// The work that is left is the manifest minus the results in storage. The queue only carries
// it and may be lost at any time. A coordinator that finds a campaign's queue gone
// ([Queue.Exists]) calls Setup and Open again and publishes what is left; handles that workers
// hold become good again by that. One whose campaign has the server for itself calls
// [Queue.Reset] in place of that, which drops all that the streams hold of the campaign.
//
// Each time a campaign's consumer is made a new epoch begins, a growing number that is kept
// with the consumer on the server and travels with every item. Epoch and round are part of the
// ids by which the server recognises duplicates, because the server remembers the ids of
// dropped items too, and would refuse to take them again.
//
// The number of a stream's first message is taken from the clock, in microseconds. So the
// numbers of a stream that was deleted are not used again by the one that takes its place: an
// answer to an item of the old one would take an item out of the new one, a result's number
// would be below one that was read, and a record's revision would be mistaken for another.
//
// # When the server does not answer
//
// A call goes on trying for Config.Patience, 30 s by default, while there is no connection, a
// stream has no leader, or an answer does not come, and then returns [ErrUnavailable]. A
// message whose answer was lost is recognised when it is sent again, and so is a record.
// Results, Watch, Sweep and Election.Run go on for as long as their context lasts. A lost
// connection is made again for as long as it takes, to any server of the cluster; nothing is
// kept to be sent later. A user that lacks a permission gets [ErrAccess], after some seconds,
// since the server does not answer; a full server gives [ErrFull] at once.
//
// # What a setting costs
//
// By default the server acknowledges a publish when the operating system has the bytes, and
// syncs them to disk every two minutes: a killed process loses nothing, a power failure may
// lose the last two minutes. Set to sync always ("sync_interval: always", or
// EmbeddedConfig.SyncAlways) it loses nothing. What that costs, with messages of 1 KB in
// batches, on a virtual machine with two busy cores and a network disk:
//
//	one server                  22,000 to 49,000 messages a second
//	one server, always             600 to  1,600, a disk flush each
//	one server, always, SetupConfig.UnsyncedWork   25,000, for work alone
//	three servers, 3 replicas               22,000
//	three servers, 3 replicas, always       11,000 to 15,000, flushed together
//
// Work that is lost costs only the time to publish it again, while a lost result or dead
// letter has to be found in storage or is missed. So a single server that syncs always is best
// used with UnsyncedWork, and a cluster without. Replicas beyond 1 need a cluster of that many
// servers.
//
// AckWait is the time after which a dead worker's items go on. A live worker calls Extend
// several times within it, and each call is a message to the server. A campaign has room for
// 65,536 leases and 4,096 waiting calls of Lease at a time.
//
// # Permissions
//
// What each role publishes to; it subscribes to its inboxes, "_INBOX_<role>.>", alone. The file
// docs/security/nats-accounts.conf has the same as configuration of a server, and a test holds
// it against this package. B stands for KV_DDIFF_BOARD, API for $JS.API.
//
//	Connect            all          API.INFO
//	Setup              coordinator  API.STREAM.CREATE.S, .UPDATE.S, .INFO.S for S each of
//	                                DDIFF_WORK, DDIFF_RESULT, DDIFF_DEAD, DDIFF_ADVISORY, B
//	Open, Pause,       coordinator  API.CONSUMER.CREATE.DDIFF_WORK.>, .INFO, .DELETE and
//	 Drop, Reset,                   .PAUSE.DDIFF_WORK.*; API.STREAM.PURGE.DDIFF_WORK,
//	 Remove                         .DDIFF_RESULT, .DDIFF_DEAD
//	Attach, Exists,    all          API.CONSUMER.INFO.DDIFF_WORK.*
//	 Depth
//	Lease              worker       API.CONSUMER.MSG.NEXT.DDIFF_WORK.*
//	Ack, Retry,        worker       $JS.ACK.DDIFF_WORK.>, $JS.ACK.*.*.DDIFF_WORK.> (its form
//	 Extend                         with domain and account)
//	Publish, Release   coordinator, ddiff.work.*.*
//	                   worker
//	PublishResult      coordinator, ddiff.result.*
//	                   worker
//	Bury, Sweep        coordinator, ddiff.dead.*
//	                   worker
//	the five above     coordinator, API.STREAM.INFO of their streams, to tell one that was
//	                   worker       deleted from one that is away
//	Results            coordinator  API.CONSUMER.CREATE.DDIFF_RESULT.*.ddiff.result.*, .INFO and
//	                                .MSG.NEXT.DDIFF_RESULT.*
//	LastResult         coordinator  API.STREAM.MSG.GET.DDIFF_RESULT
//	DeadLetters        coordinator, API.STREAM.INFO.DDIFF_DEAD, API.STREAM.MSG.GET.DDIFF_DEAD
//	                   command
//	RemoveDead         coordinator  API.STREAM.MSG.DELETE.DDIFF_DEAD
//	Sweep              coordinator  API.CONSUMER.CREATE, .INFO and .MSG.NEXT.DDIFF_ADVISORY.ddiff-sweep;
//	                                $JS.ACK.DDIFF_ADVISORY.>, $JS.ACK.*.*.DDIFF_ADVISORY.>;
//	                                API.CONSUMER.LIST.DDIFF_WORK; API.STREAM.MSG.GET.DDIFF_WORK,
//	                                .MSG.DELETE.DDIFF_WORK
//	Board: read        all          API.STREAM.INFO.B, API.STREAM.MSG.GET.B
//	Board: watch       all          API.CONSUMER.CREATE.B.*.$KV.DDIFF_BOARD.>, .INFO.B.*, .MSG.NEXT.B.*
//	Board: write       coordinator  $KV.DDIFF_BOARD.> (so Election)
//	                   worker       $KV.DDIFF_BOARD.worker.*
//	                   command      $KV.DDIFF_BOARD.campaign.*
package queue
