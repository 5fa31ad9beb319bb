// Package queue carries work items from the coordinator to the workers and their outcomes back, over NATS JetStream. It
// also stores the small records that coordinators, workers and people share. It is the only package that imports NATS.
// [Connect] connects to external servers; [Embedded] is a server in the process that opens no port.
//
// # The life of a message
//
// [Queue.PublishBatch] stores items in the stream DDIFF_WORK under the subject "ddiff.work.<campaign>.<class>", each with
// its id and the caller's trace context. Items of one class can be restored in one batch. The stream stores an item
// until it is acknowledged. The same id is refused with [ErrDuplicate] for two minutes, except in another [Work.Round].
//
// [Queue.Lease] leases an item to one worker for Config.AckWait. The worker calls [Lease.Extend] while it makes
// progress, and then settles the lease in one of three ways:
//
//	Ack      the outcome is final: done, failed or dead. The item leaves the stream.
//	Retry    the attempt failed; the item is delivered again after a delay, which RetryDelay suggests.
//	Release  the item was not worked on, because the worker stops. It is available at once.
//
// A lease that is not extended expires, for example after a worker's death, and the item is delivered again. Each
// delivery is an attempt, except after Release, which replaces the item by a copy with the earlier number of attempts. A
// worker that leases an item with [Lease.Exhausted] publishes it as dead without another attempt, because the item has ended
// MaxAttempts workers, unless the worker knows that workers end for other reasons. The server delivers an item at most 4·MaxAttempts + 2
// times; the two spare deliveries are for the publication. If these workers die too, [Sweep] publishes the item once more when the campaign has no other work, as one that has used its attempts, and
// publishes it as dead after as many deliveries again.
//
// A slow worker may finish an item that has been delivered again. Delivery is therefore at least once, and a worker's
// writes must be deterministic and create-only. A late Ack is valid: it removes the item for every worker.
//
// [Lease.PublishResult] publishes an outcome to the coordinator through the stream DDIFF_RESULT, which [Queue.Results]
// reads and follows. The coordinator stores outcomes and then removes them with [Queue.PurgeResults]. A worker writes the
// result to storage, publishes its outcome, and acknowledges the item, in this order. After a crash in between, the next
// attempt finds the stored result and continues from there, so a reader of results may see an id twice. If the stream is
// full, PublishResult waits.
//
// # Who creates the streams
//
// The coordinator calls [Setup], which creates the streams and the [Board], and [Open] for each campaign, which creates
// the campaign's consumer. A worker calls [Attach], which creates nothing and adopts the coordinator's settings. One of
// several coordinators leads: [Election].
//
// The pending work is the manifest minus the results in storage. The queue only transports it and may be lost at any
// time. When a campaign's consumer is missing ([Queue.Exists]), the coordinator calls Setup and Open again and publishes
// the pending work; the workers' handles become valid again.
//
// Each creation of a campaign's consumer starts a new epoch, an increasing number that is stored with the consumer and
// travels with every item. Epoch and round are part of the ids by which the server detects duplicates, because the
// server also remembers the ids of dropped items and would refuse them. Every worker may publish under any id, so a
// duplicate is no proof: an outcome is then stored under another id, and a released item stays.
//
// The first sequence number of a stream is the creation time in microseconds. The numbers of a deleted stream are
// therefore not reused by its successor: otherwise an acknowledgement of an old item would remove a new item, a new
// result's number could be below a number that was read, and a record's revision could be ambiguous.
//
// # Requests to the leader
//
// [Board.Request] asks the leader, who answers with [Board.Answer], about what is not on the board. Nothing is stored: only a request whose
// sender waits is answered. What must survive a leader's death is a change of a record.
//
// # Outages
//
// While there is no connection, no leader of a stream, or no answer, a call retries for Config.Timeout, 30 s by default,
// and then returns [ErrUnavailable]. Messages and records whose answer was lost are recognised when they are sent again.
// Results, Watch, Sweep and Election.Run retry until their context ends. A lost connection is restored without a time
// limit, to any server of the cluster; requests are not buffered. A missing permission returns [ErrAccess] after a few
// seconds, because the server does not answer; a full server returns [ErrFull] at once.
//
// # Durability
//
// By default the server acknowledges a publish when the operating system has the bytes, and syncs them to disk every two
// minutes: a killed process loses nothing, a power failure may lose the last two minutes. With "sync_interval: always"
// a power failure loses nothing.
//
// Lost work costs only another publish, but a lost result must be recovered from storage or is missing.
// Use UnsyncedWork with a single server that syncs always, and not with a cluster. Replicas above 1 need a cluster of
// that many servers.
//
// AckWait is the delay until the items of a dead worker are delivered again. A live worker calls Extend several times
// within AckWait, and each lease is a message to the server. A campaign is limited to 1,048,576 leases at a time, and to
// 4,096 requests that wait at the server; further calls of Lease wait in their own process.
//
// # Permissions
//
// docs/security/nats-accounts.conf has the subjects of each role as server configuration, with which the tests of this package
// run.
package queue
