// Package solver runs a restoration method of package method on batches of measurements.
//
// A step is one expression: the score network, the operator, its derivative and all the arithmetic between. It is one model
// and one call of the runtime. After each step a run can be cancelled, reported, checkpointed and resumed. Noise is
// counter-based (package noise): the state after step k does not depend on the batch.
//
// The state stays in the memory of the device, where a step reads one buffer and writes another. The host reads the curves after each step, and the state
// when a run stops.
package solver
