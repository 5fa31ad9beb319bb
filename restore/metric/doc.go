// Package metric scores restored images.
//
// [PSNR] and [SSIM] compare two images on [0, 1] as the Python package piq (0.8) computes
// them, so that numbers can be set beside published ones. [Residual] compares a measurement
// with the re-measured restoration and needs no ground truth. [MeanCI] summarises a column
// of scores.
//
// A score depends on its two inputs only, never on a batch. Every metric has a versioned
// id; a change that moves any score gets a new id.
package metric
