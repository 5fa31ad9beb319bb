// Package onnx builds, composes and differentiates ONNX graphs.
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
// Nothing runs here: onnxruntime runs the serialised graphs.
package onnx
