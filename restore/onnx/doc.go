// Package onnx builds, composes and runs ONNX graphs.
//
// A Graph is built operation by operation with static shapes: every Value knows its element type and dimensions, and a
// shape mismatch, which is a bug of the caller, panics. Models from files (score networks, operators) are inlined into
// a Graph under a prefix, and Loop wraps a sub-graph, so that several solver steps become one call. Model.Half is a model in mixed
// precision.
//
// Gradient derives the vector-Jacobian product of an expression by reverse mode, through built operations and inlined
// models. A rule (rule.go) states the gradient of one operation; the files gradient_*.go have one family each. The shapes of
// inlined nodes are inferred on demand (infer*.go), with the small values that they depend on (fold*.go). Recompute trades
// time for memory. Model.Differentiable checks in advance whether a model's gradient exists.
//
// Runtime owns ONNX Runtime, of which a process has one: the program opens the shared library once and closes it once.
// With adds another execution provider. On a GPU, a node that would run on the CPU is an error (ErrFallback). This is
// the only package that imports the runtime's Go binding; session.go, signals.go and thread.go shield other packages
// from faults of the binding and the providers.
package onnx
