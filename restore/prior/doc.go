// Package prior loads score models: ONNX networks that predict the noise (or the clean
// image, or the velocity) in a noisy image x_t at time index t, with a model card in the
// file's metadata that says how to use them.
package prior
