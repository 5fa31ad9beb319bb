// Package gpucheck proves a device: it runs what a worker runs on the CPU and on the device,
// compares, measures, and writes down what it found.
//
// [Run] goes through the sections in order. Those that compute run in a process of their own,
// the program itself, so that a provider that crashes costs one section and not the report. A
// section that fails is recorded and the check goes on.
//
//	provider  the provider loads, and takes a whole model without leaving a node to the CPU
//	network   the score network's output, device against CPU
//	tasks     each task: one step from equal states, then whole restorations, device against CPU
//	speed     milliseconds per step by batch, of the network alone and of the solver
//	campaign  the network's share of the wall time of a campaign
//	process   SIGTERM while the device works; SIGKILL, and what is left of its memory
//	torch     the same network with the same weights in PyTorch
//
// The device may be any that package onnx knows, the CPU itself included: then the differences
// are zero and the check checks itself. Nothing here is particular to CUDA but TF32 and the
// questions to nvidia-smi.
package gpucheck
