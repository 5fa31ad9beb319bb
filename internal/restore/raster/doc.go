// Package raster represents images as tensors, and decodes and encodes files.
//
// An [Image] is planar (channel, row, column) float32 with values in [-1, 1]: a stored sample p, scaled to [0, 1],
// becomes 2p - 1. No colour profile is applied and nothing is linearised.
//
// [Decode] reads PNG, JPEG, TIFF, WebP, BMP and GIF into three channels, of which [InChannels] makes one; [Probe] reads only the header. [Fit] converts an image to
// the working size, which [Shape] computes in advance. [EncodePNG] writes 8 bits per sample.
//
// Arrays that are not images, such as stored measurements, are NumPy files: [DecodeNPY] and [EncodeNPY].
//
// Input is not trusted: sizes in headers are checked against [MaxPixels] and [MaxValues] before pixels are allocated, and
// every defect of a file is an error, never a panic. A [Budget] limits the memory of concurrent decoders.
package raster
