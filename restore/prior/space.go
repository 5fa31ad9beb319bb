package prior

import "ddiff/restore/onnx"

// Space is the domain in which a prior works: the shape of its tensors and the ways to pixels and back. All priors work on
// pixels so far, for which all of them are identities.
type Space struct{}

// Space is the domain of the prior's inputs and predictions.
func (p *Prior) Space() Space { return Space{} }

// Latent reports whether the domain is that of an autoencoder's latents.
func (Space) Latent() bool { return false }

// Dims is the shape of the tensor that holds a batch of images of shape [N, C, H, W].
func (Space) Dims(images []int) []int { return images }

// Decode builds the images of a tensor of the space.
func (Space) Decode(_ *onnx.Graph, z onnx.Value) (onnx.Value, error) { return z, nil }

// Encode builds the tensor of the space for images.
func (Space) Encode(_ *onnx.Graph, x onnx.Value) (onnx.Value, error) { return x, nil }
