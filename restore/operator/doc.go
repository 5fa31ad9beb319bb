// Package operator defines the measurement operators A of the eight restoration tasks.
//
// Each operator is defined once, as an ONNX expression y = A(x) of a batch of images
// x [N, C, H, W] in [−1, 1]. Simulating a measurement, the gradient of the data term, and
// the residual all use that one expression; the gradient comes from it by reverse mode.
// What differs from item to item (a mask, a motion kernel) is a parameter of the
// expression, so that items with different masks share a batch.
//
// The definitions are those of Kim, Levy and Wetzstein, "Dual Ascent Diffusion for Inverse
// Problems" (CVPR 2026), appendix "Inverse Problems Setup", which follow DPS and, for high
// dynamic range, DAPS. Lengths (kernel sizes, the box) are stated for images of 256 pixels
// and scale with min(H, W)/256.
//
// Borders, resampling and Fourier transforms are written as products with small constant
// matrices. Where the matrices are large, images are split into an even and an odd part
// about their centre first, which halves every product (see parity.go).
package operator
