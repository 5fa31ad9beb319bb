// Package haar writes latent priors that need no training, for tests and for trying methods on latents.
//
// The autoencoder is the orthonormal Haar transform of square blocks, so its decoder is the inverse and the transpose of
// its encoder. Gaussian noise on the latents is Gaussian noise of equal strength on the image, and a pixel prior between
// decoder and encoder is an exact network for latents. Such a prior restores what its pixel prior restores.
package haar
