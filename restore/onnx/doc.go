// Package onnx builds, composes and runs ONNX graphs.
//
// A Graph is built op by op with static shapes: every Value knows its element type and
// dimensions, a shape mismatch is a bug of the caller and panics. Models read from files
// (score networks, operators) are inlined into a Graph under a prefix, and loops wrap a
// sub-graph, so that several solver steps become one call of one model. Model.Half is a model
// in mixed precision. Gradient derives
// the vector-Jacobian product of a built expression by reverse mode over the operations
// that measurement operators use.
//
// Runtime owns the process-wide ONNX Runtime: the shared library is opened once and closed
// once, by the program that holds the Runtime; With gives it another execution provider. On a
// GPU no node may run on the CPU unnoticed: ErrFallback names it. This is the only package
// that imports the runtime's Go binding, and session.go, signals.go and thread.go are where
// the faults of binding and providers are kept from the others.
package onnx
