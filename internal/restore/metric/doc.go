// Package metric scores restored images.
//
// The metrics of [Builtin] compare two images on [0, 1] as the Python package piq (0.8) does, so that scores are comparable
// with published ones; [Residual] compares a measurement with the measurement of the restoration and needs no ground
// truth. Those of [Unclipped] compare images without clipping, as the evaluation of DDiff's authors does with
// scikit-image. [Network] is a metric in an ONNX file, such as LPIPS. A further metric is one file here and one line of Builtin.
//
// A score depends on its two inputs only, never on a batch.
package metric
