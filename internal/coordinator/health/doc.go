// Package health watches what a coordinator depends on: the store ([Checker]), the streams of the queue ([Streams]) and the
// workers ([Workers]).
//
// Every coordinator checks the store and publishes the result on the board; a leader that cannot use the store steps down if
// another coordinator can. The problems that the types find are in the statuses of the campaigns and in the metrics. The
// package owns the coordinators' beats; a new thing to watch is a type with a Watch and a Problem.
package health
