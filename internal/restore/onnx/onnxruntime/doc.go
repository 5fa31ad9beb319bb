// Package onnxruntime owns ONNX Runtime, of which a process has one: it opens the shared library, compiles models and runs
// them.
//
// The program opens the library once and closes it once (Open, Runtime.Close); With adds another execution provider. A Session
// is one compiled model with the order of its tensors. A Binding has the tensors of a session that computes often, which can stay in the memory of a GPU. On a GPU, a node that would run on the CPU is an error (ErrFallback).
// ErrMemory, ErrDevice and ErrDeviceLost name the faults of a device that callers handle. Precision states how a network
// computes on this device; Divides reports that only networks run on the provider.
//
// Package openvino computes the networks of the provider openvino. This is the only package that imports the runtime's Go
// binding. binding.go calls those functions of the C interface that it lacks; session.go, signals.go and thread.go shield other packages from faults of the binding and the providers. It builds
// the models of its probes with package onnx, which knows no runtime.
package onnxruntime
