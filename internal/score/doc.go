// Package score computes metrics of stored results without solving anything.
//
// It compares truth.png and restored.png of each item, which have 8 bits per sample, while a worker scores the samples in
// full precision before it rounds them. A metric of stored pictures therefore has a version of its own, such as psnr@1:png,
// and never shares a column with psnr@1. Metrics of images that are not clipped compare truth.png and restored.npy, which items of
// campaigns with the field unclipped have.
//
// The scores are in scores/METRIC/ of the output (package manifest describes the files), not in result.json, so that results
// and passports stay as they are. A part is one write: an interrupted or concurrent scoring loses and mixes nothing. Each
// score names the pictures that it compares; the score of an item that was restored anew does not count.
package score
