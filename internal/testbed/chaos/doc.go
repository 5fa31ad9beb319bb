// Command chaos breaks a cluster on purpose, on this machine, while it works on a campaign, and
// checks that nothing is lost, nothing is there twice and nothing came out differently. `make
// chaos` calls it.
//
// Real processes are broken, see package clustertest: three NATS servers, an S3 server behind
// a proxy, two coordinators and three workers. First the campaign runs undisturbed in one
// process (ddiff run); its results are what the cluster's are compared with.
//
// # Faults
//
// Faults are drawn from the seed: decks of all kinds, shuffled, one after the other. Each is
// due when so many items have a result, a number that is drawn as well; so all of them hit the
// campaign, however fast the machine is. What a fault meets depends on the machine: two runs
// with one seed have the same faults in the same order, and not the same schedule.
//
//	worker-kill          SIGKILL, started again after a while
//	worker-suspend       SIGSTOP for longer than the lease, then SIGCONT: a zombie
//	worker-drain         SIGTERM in the middle of work, started again
//	coordinator-kill     SIGKILL, started again after a while
//	coordinator-suspend  SIGSTOP for longer than its term of office, then SIGCONT
//	nats-kill            SIGKILL of one of three servers, started again
//	nats-leader-kill     the same for the server that leads the work stream
//	stream-delete        the whole work stream is deleted
//	s3-unavailable       every request is answered with 503
//	s3-hang              connections stay open and carry nothing
//	s3-reset             connections are reset
//	disk-full            the disk with a worker's cache has no space left
//	clock                the wall clock of a process is set wrong by up to ten minutes
//
// # Checks
//
// In the end every item has exactly one final state; every item that is done has the one
// result that its identity names, with all its files as their digests say (ddiff verify);
// every measurement is equal, bit by bit, to that of the undisturbed run, and every restored
// image within one grey level of it. A second, small campaign beside it has images that cannot
// be read: its items fail, and the same ones as without faults.
//
// # Figures
//
// redelivered is the number of times that an item was handed out again because the first time
// came to nothing, as the attempts in the workers' logs tell it. The duplicate work share is
// the number of solutions beyond the first of an item, over the number of items. The recovery
// time of a fault is the time from its beginning to the next result in storage, so that it
// contains the time that the fault itself lasts; recovery_max_s is the longest one.
package main
