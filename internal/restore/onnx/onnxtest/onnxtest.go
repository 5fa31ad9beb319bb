// Package onnxtest opens ONNX Runtime for tests, and builds networks for them.
package onnxtest

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxruntime"
)

var open = sync.OnceValues(func() (*onnxruntime.Runtime, error) {
	lib, err := install.Locate(install.LocateOptions{})
	if err != nil {
		return nil, err
	}
	// Tests run beside each other: threads that share an operation would wait for each other.
	return onnxruntime.Open(onnxruntime.Config{Library: lib.Path, Provider: onnxruntime.ProviderCPU, Threads: 1})
})

// Runtime returns the process's runtime on the CPU, which stays open until the test binary ends. The test fails if the
// library is not installed; make runtime installs it.
func Runtime(tb testing.TB) *onnxruntime.Runtime {
	tb.Helper()
	rt, err := open()
	if err != nil {
		tb.Fatalf("open ONNX Runtime: %v", err)
	}
	return rt
}

// WithMetadata returns a model file with metadata entries that add to or replace its own.
func WithMetadata(tb testing.TB, model []byte, entries map[string]string) []byte {
	tb.Helper()
	tail := &onnxpb.ModelProto{}
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		tail.MetadataProps = append(tail.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: entries[k]})
	}
	data, err := proto.Marshal(tail)
	if err != nil {
		tb.Fatal(err)
	}
	return slices.Concat(model, data) // concatenated messages merge
}
