// Package raster holds images as tensors and moves them in and out of files.
//
// An [Image] is planar (channel, row, column) float32 with values in [-1, 1]: a stored
// sample p, scaled to [0, 1], becomes 2p - 1. Stored values are used as they are: no
// colour profile is applied and nothing is linearised.
//
// [Decode] reads PNG, JPEG, TIFF and WebP and always gives three channels; [Probe] reads
// only the header. [Fit] brings an image to the working size, [Shape] says beforehand
// which size that will be. [EncodePNG] writes 8 bits per sample.
//
// Arrays that are not pictures, such as stored measurements, travel as NumPy files:
// [DecodeNPY] and [EncodeNPY].
//
// Input is not trusted: sizes are checked against [Limits] from the header, before pixel
// memory is allocated, and every defect of a file is an error, never a panic.
package raster
