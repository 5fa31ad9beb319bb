// Package onnx builds, composes and differentiates ONNX graphs.
//
// A Graph is built operation by operation with static shapes: every Value knows its element type and dimensions, and a
// shape mismatch, which is a bug of the caller, panics. Models of package modelfile (score networks, operators) are inlined into
// a Graph under a prefix, and Loop wraps a sub-graph, so that several solver steps become one call.
//
// Gradient derives the vector-Jacobian product of an expression by reverse mode, through built operations and inlined
// models. A rule (rule.go) states the gradient of one operation; the files gradient_*.go have one family each. Package infer
// knows the shapes of inlined nodes.
//
// Nothing runs here: onnxruntime runs the serialised graphs.
package onnx
