package onnx

import "ddiff/internal/restore/onnx/infer"

// Value is a tensor in a Graph: an input, a constant or the output of an operation.
type Value = infer.Value

// DType is the element type of a value.
type DType = infer.DType

// The element types that built graphs use.
const (
	Float   = infer.Float
	Float16 = infer.Float16 // only inside models
	Int64   = infer.Int64
	Bool    = infer.Bool
	Double  = infer.Double // only inside models
)
