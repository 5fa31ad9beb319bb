// Package gpucheck checks a device: it runs a worker's computations on the CPU and on the device, compares them,
// measures speed and memory, sends signals, and reports the results.
//
// [Run] executes the sections in order and continues after a failed one. Sections that compute run in a process of their own, which is
// this program started again, so that a crashing provider fails one section and not the whole check. A new section is a name
// in [Sections], and a function in runSection.
//
//	provider  the provider loads, and accepts a whole model without leaving nodes to the CPU
//	network   the score network's output, device against CPU
//	tasks     each task: one step from equal states, then whole restorations, device against CPU
//	speed     milliseconds per step by batch size, of the network alone and of the solver; memory
//	process   SIGTERM while the device works; SIGKILL, and the device memory after it
//
// The device may be any that package onnx supports. With the CPU itself all differences are zero, which tests the
// check. Only TF32 and the queries to nvidia-smi are specific to CUDA.
package gpucheck
