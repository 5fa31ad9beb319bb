// Package openvino computes networks with OpenVINO on the CPU, of any maker, by the library's C interface.
//
// Load opens the library once per process; it stays open until the process ends. Compile makes a Network of an ONNX model with fixed
// dimensions. Package onnxruntime decides what OpenVINO computes, and knows the precisions of the processor.
package openvino
