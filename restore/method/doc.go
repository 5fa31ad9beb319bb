// Package method defines the restoration methods: each is one file with its parameters, schedule and step, its
// preset rows in presets.txt, and one line in [Builtin].
//
// A [Method] restores an image x from a measurement y = A(x) + n with a diffusion prior. Its [Info] declares names:
// parameters, state tensors, draws and curves. Its Plan lays out the numbers of every step (time, scalars, standard
// deviations of the draws). Its Step builds one step as an ONNX graph with a [Builder], which has the parts that
// methods share: the clean image that the prior predicts, the gradient step of the data term, and loops inside a step.
//
// Everything else knows names only: package solver compiles and runs the steps, draws the noise, and moves the state;
// campaigns, checkpoints, traces and reports carry the declared names.
//
// A method must satisfy two rules, and solver's tests check every method of [Builtin] against them. All
// randomness comes from the initial state and the declared draws, and an image does not depend on the other images of
// its batch. Then a result depends on neither batch, worker nor interruption.
package method
