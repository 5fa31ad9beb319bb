// Package solver runs a restoration method of package method on batches of measurements.
//
// A step is one expression: the score network, the operator, its derivative and all the arithmetic between. A call of
// the runtime makes a chunk of steps, in a loop of the runtime or one after the other ([Form]), and the state crosses to
// the host at chunk borders only. At a border a run can be cancelled, reported, checkpointed and resumed. Noise is
// counter-based (package noise): the state after step k depends neither on the chunks nor on the batch.
package solver
