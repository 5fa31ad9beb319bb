// Package operator defines the measurement operators A of the restoration tasks.
//
// Each operator is one ONNX expression y = A(x) of a batch of images x [N, C, H, W] in
// [−1, 1]. Simulated measurements, the gradient of the data term and the residual all come
// from this expression; the gradient comes by reverse mode. A mask or kernel that differs
// from item to item is an input of the expression, so that items with different masks share
// a batch.
//
// A task is one file, which returns a [Definition], and one line in builtin (set.go). A program can
// append definitions of its own to the [Set] that it passes on. Its settings for each method are rows of restore/method/presets.txt, without which
// it has the defaults; docs/tasks.md lists it, and tools/ddiff_torch has its definition (operators.py) and a case (CASES in vectors.py) for the vectors in testdata. The choice of restore is in cmd/ddiff/run/auto.csv.
//
// The definitions follow Kim, Levy and Wetzstein, "Dual Ascent Diffusion for Inverse
// Problems" (CVPR 2026), appendix "Inverse Problems Setup", which follows DPS and, for high
// dynamic range, DAPS. Lengths (kernel sizes, the box) are stated for images of 256 pixels
// and scale with min(H, W)/256.
//
// Borders, resampling and Fourier transforms are products with small constant matrices, see
// package axis.
package operator
