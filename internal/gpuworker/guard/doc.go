// Package guard decides when a worker must stop, from stages, failures and times alone: it knows no queue, store or engine.
//
// A reason for which a worker suspends itself is one entry of environmentErrors (environment.go): an error that says nothing about its item; one that can pass
// by itself is also in Temporary. Results that may be the worker's fault count, too: gpuworker/attempt.go has their list
// before Environmental, so an error in both is a doubt. The test of a suspended worker (gpuworker/probe.go) must meet the cause, or the worker leases again. The coordinator's list for sources is in internal/coordinator/shard/errors.go.
// [Breaker] counts these failures and suspends after some of them (breaker.go). A stage with a limit is a field of [Limits], which a
// [Watchdog] observes (watchdog.go).
package guard
