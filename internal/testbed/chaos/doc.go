// Package chaos injects faults into a cluster on this machine during a campaign and checks that no
// item is lost or duplicated and that no result differs. Its tests run a short form; `make chaos` runs all of it.
//
// The cluster consists of real processes, see package clustertest: three NATS servers, an S3 server
// behind a proxy, two coordinators and three workers. The campaign first runs undisturbed in one
// process (ddiff run); the results of the cluster are compared with that run.
//
// # Faults
//
// The seed determines the faults: shuffled decks of all kinds. Each fault is due at a drawn number
// of results, so that all faults hit the campaign, independent of the speed of the machine. Two
// runs with one seed have the same faults in the same order, but not the same timing.
//
//	worker-kill          SIGKILL, restart after a while
//	worker-suspend       SIGSTOP for longer than the lease, then SIGCONT: a zombie
//	worker-drain         SIGTERM during work, restart
//	coordinator-kill     SIGKILL, restart after a while
//	coordinator-suspend  SIGSTOP for longer than the leader's term, then SIGCONT
//	nats-kill            SIGKILL of one of three servers, restart
//	nats-leader-kill     the same for the leader of the work stream
//	stream-delete        deletion of the work stream
//	s3-unavailable       every request gets 503
//	s3-hang              connections stay open without data
//	s3-reset             connections are reset
//	disk-full            the disk with a worker's cache is full
//	clock                the wall clock of a process is wrong by up to ten minutes
//
// # Checks
//
// At the end every item has exactly one final state. Every item that is done has exactly one result
// under its identity, and all its files match their digests (ddiff verify). Every measurement equals
// that of the undisturbed run bit by bit, and every restored image to within one grey level. A
// second, small campaign has damaged images: the same items fail as without faults.
//
// # Figures
//
// redelivered counts the deliveries of items after an unsuccessful one, from the attempts in the
// workers' logs. The share of duplicate work is the number of solutions beyond the first of each
// item, divided by the number of items. The recovery time of a fault runs from its beginning to
// the next result in storage, and so includes the fault; recovery_max_s is the maximum.
package chaos
