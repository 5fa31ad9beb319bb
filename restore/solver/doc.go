// Package solver runs Dual Ascent Diffusion (DDiff, Kim, Levy and Wetzstein, CVPR 2026) and
// the variants of its ablation on batches of measurements.
//
// DDiff is linearised ADMM in which the prior's proximal step is one evaluation of a
// diffusion model. From x_T ~ N(0, I) and u = 0, each step from time t to the next s is
//
//	z   = (x_t − √(1−ᾱ_t)·ε_θ(x_t, t))/√ᾱ_t, clipped to [−1, 1]
//	v   = z − u
//	x   = v − γ_t·∇_v‖y − A(v)‖₂
//	ε̂   = (x_t − √ᾱ_t·x)/√(1−ᾱ_t)
//	x_s = √ᾱ_s·(x + u) + √(1−ᾱ_s−σ_t²)·ε̂ + σ_t·ε
//	u   = u + x − z
//
// (Algorithm 1), and the answer is x_s after the last step, where ᾱ_s = 1. The gradient is
// that of the un-squared norm, taken per image over all observed entries, so that γ has the
// meaning it has in the code on which the paper's experiments stand; "squared" is an option.
//
// A step is one expression: the score network, the operator, its derivative and all the
// arithmetic between. A call of the runtime makes a chunk of steps, in a loop of the runtime
// or one after the other (Form), so that the state crosses to the host at chunk borders
// only. There a run can be cancelled, reported and resumed. Noise is counter-based (package noise): the state after step k does not
// depend on how the steps were cut into chunks, nor on the batch.
package solver
