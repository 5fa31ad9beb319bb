// Package infer states what is known of the values of an ONNX graph without running it: types, dimensions, and the elements of
// small values that do not depend on data.
//
// Value and DType name a tensor and its element type. Facts holds the nodes and constants of one graph, and refers to those of the
// graph around it. TypeOf and Understand infer on demand (infer*.go), with the small values that shapes depend on (fold*.go). A
// Node is an operation with the types of its inputs and outputs; Window, Cut and Einsum are the parsed attributes of
// convolutions, slices and contractions. Errors wrap ErrShape if a type does not follow from the inputs, and ErrNoGradient for
// forms of an operation that are not covered.
//
// It imports the messages of the file form and nothing else of ddiff.
package infer
