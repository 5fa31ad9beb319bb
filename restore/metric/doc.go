// Package metric scores restored images.
//
// [PSNR] and [SSIM] compare two images on [0, 1] as the Python package piq (0.8) does, so that scores are comparable
// with published ones. [PSNRReferenceRange] and [SSIMWindow5] compare images without clipping, as the evaluation of DDiff's authors does with
// scikit-image. [Residual] compares a measurement with the measurement of the restoration and needs no ground
// truth. [Network] is a metric in an ONNX file, such as LPIPS.
//
// A score depends on its two inputs only, never on a batch. Every metric has a versioned id; a change of any score
// requires a new id.
package metric
