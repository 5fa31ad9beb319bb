// Package coordinator runs campaigns: it shards a manifest into work items, publishes what
// has no result yet, follows the results, and writes the report.
//
// The truth is the manifest minus the results in storage. A run starts by looking which
// items have a result, drops whatever an earlier run left in the queue, and publishes the
// difference: after a crash or an interruption the same command finishes what is left and
// redoes nothing. Every item of the manifest ends in exactly one of done, failed and dead;
// what is none of these yet is pending.
package coordinator
