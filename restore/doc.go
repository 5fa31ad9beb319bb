// Package restore turns measurements into images: it compiles what a batch of compatible
// items needs (the operator, the fused solver step) and keeps it for the next batch.
//
// It knows no queue and no storage; package gpuworker connects it to them.
package restore
