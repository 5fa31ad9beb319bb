package prior

import "ddiff/restore/onnx"

// Space is the domain in which a prior works: the shape of its tensors and the way back to pixels. All priors work on
// pixels so far, for which both are identities.
type Space struct{}

// Space is the domain of the prior's inputs and predictions.
func (p *Prior) Space() Space { return Space{} }

// Dims is the shape of the tensor that holds a batch of images of shape [N, C, H, W].
func (Space) Dims(images []int) []int { return images }

// Decode builds the images of a tensor of the space.
func (Space) Decode(_ *onnx.Graph, x onnx.Value) onnx.Value { return x }
