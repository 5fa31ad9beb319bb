// Package photograph reads, judges and writes the files of photographs: noise levels, widths of blurs, masks and kernels as people draw them, and the form of restored
// pictures.
//
// [EncodeFile] writes restored pictures as files that replace photographs: in the format of the source or another one, with its transparency, its range
// of values, and what it says beside its pixels.
//
// [ReadDraw] reads pictures with soft edges, transparent layers or exchanged colours, arrays with an even side, kernels in a frame. It repairs what has one sensible
// meaning and says so, and doubts what has not.
//
// [EstimateNoise] finds the standard deviation of white Gaussian noise in one picture. The noise adds one variance to all eigenvalues of the covariance of small patches. The content of a picture adds to few of them,
// and to fewer where a patch has little texture. The estimate has two parts, both published:
//
//   - Patches are selected as by Liu, Tanaka and Okutomi ("Single-image noise level estimation for blind denoising", IEEE
//     Transactions on Image Processing 22, 2013): a patch is kept while the energy of its gradients may be that of the
//     noise alone, at the noise level of the last selection.
//   - The variance of a selection is read from the eigenvalues of its covariance as by Chen, Zhu and Heng ("An efficient
//     statistical method for image noise level estimation", ICCV 2015): the mean of the smallest ones, as many as have a mean that
//     is not above their median.
//
// A patch has 4×4 pixels with all channels, which separates content from noise better than patches of single channels: content
// has nearly the same edges in all channels, white noise is independent. docs/noise.md has the measured errors.
// The noise of a JPEG photograph is not white: it is low in the fine details and in the colours, and so is its estimate. [EstimateCompressed] is for such files.
package photograph
