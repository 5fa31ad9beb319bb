// Package noise draws random numbers by counter: every number is a pure function of a key
// (what item and run it is for), a purpose, a step and a position. Nothing depends on the
// order of calls, the batch, the worker or a retry, so that a result can be computed again
// anywhere, from any step on.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). Normal deviates come by inversion of the distribution
// function from one 32-bit word each, by a table of cubics, with fixed rounding: the same
// words give the same bits on every platform.
package noise
