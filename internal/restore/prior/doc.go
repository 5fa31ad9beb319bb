// Package prior loads score models: ONNX networks that predict the noise, the clean image or the velocity from a noisy
// image x_t at time index t. A model card in the file's metadata describes how to use the network. [Grid] divides
// large images into overlapping tiles for it.
package prior
