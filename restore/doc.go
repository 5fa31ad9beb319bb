// Package restore turns measurements into images. An [Engine] compiles the operator and the solver of a batch and caches them
// for the next batch. Package gpuworker connects it to queue and storage.
package restore
