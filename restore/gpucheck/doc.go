// Package gpucheck checks a device: it runs a worker's computations on the CPU and on the device, compares them,
// measures speed and memory, and reports the results.
//
// [Run] executes the sections in order. Sections that compute run in a process of their own, which is this program
// started again, so that a crashing provider fails one section and not the whole check. A failed section is recorded
// and the check continues.
//
//	provider  the provider loads, and accepts a whole model without leaving nodes to the CPU
//	network   the score network's output, device against CPU
//	tasks     each task: one step from equal states, then whole restorations, device against CPU
//	speed     milliseconds per step by batch size, of the network alone and of the solver
//	campaign  the network's share of a campaign's wall time
//	process   SIGTERM while the device works; SIGKILL, and the device memory after it
//	torch     the same network with the same weights in PyTorch
//
// The device may be any that package onnx supports. With the CPU itself all differences are zero, which tests the
// check. Only TF32 and the queries to nvidia-smi are specific to CUDA.
package gpucheck
