// Package noise generates counter-based random numbers: every number is a pure function of a key (of item and run), a
// purpose, a step and a position. Numbers do not depend on the order of calls, the batch, the worker or retries, so any
// machine can reproduce a result from any step on.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Normal deviates are computed by inversion of the distribution function from one 32-bit word each, with a table of
// cubics and fixed rounding: equal words give equal bits on every platform.
package noise
