// Package onnxpb holds the ONNX file messages that ddiff uses, generated from
// onnx.proto, our own schema written from the ONNX specification.
package onnxpb

//go:generate protoc --plugin=protoc-gen-go=../../../../bin/protoc-gen-go --go_out=. --go_opt=paths=source_relative onnx.proto
