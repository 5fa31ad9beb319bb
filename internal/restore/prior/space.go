package prior

import (
	"fmt"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
)

// Latent describes the space of a latent prior.
type Latent struct {
	FirstStage string  // VQ or KL
	Channels   int     // of latents
	Factor     int     // image side over latent side
	Scale      float64 // factor between the autoencoder's latents and the network's, which the parts include
	Class      string  // for which the network was exported; empty for none
	// NoGradient is empty if the decoder has a gradient, which some modes of methods need. Otherwise it names the operation
	// without one.
	NoGradient string `json:",omitempty"`
}

// Space is the domain in which a prior works: the shape of its tensors and the ways to pixels and back. For a prior that
// works on pixels both ways are identities. A latent prior has the latents that its network reads: encoder and decoder
// include the scale factor.
type Space struct {
	card  Card
	file  string
	parts map[string]*modelfile.Model // by role; nil: pixels
}

// Space is the domain of the prior's inputs and predictions.
func (p *Prior) Space() Space { return Space{p.Card, p.File, p.parts} }

// Latent reports whether the domain is that of an autoencoder's latents.
func (s Space) Latent() bool { return s.parts != nil }

// Dims is the shape of the tensor that holds a batch of images of shape [N, C, H, W].
func (s Space) Dims(images []int) []int {
	if !s.Latent() {
		return images
	}
	f := s.card.Latent.Factor
	return []int{images[0], s.card.Latent.Channels, images[2] / f, images[3] / f}
}

// images is the shape of the images of a tensor of the space.
func (s Space) images(z []int) []int {
	f := s.card.Latent.Factor
	return []int{z[0], s.card.Channels, z[2] * f, z[3] * f}
}

// Decode builds the images of a tensor of the space. A quantiser comes first, and passes gradients on unchanged. The result
// is not clipped to the range of images.
func (s Space) Decode(g *onnx.Graph, z onnx.Value) (onnx.Value, error) {
	if !s.Latent() {
		return z, nil
	}
	if s.parts[quantizerRole] != nil {
		q, err := s.quantize(g, z)
		if err != nil {
			return onnx.Value{}, err
		}
		z = g.Add(g.Detach(q), g.Minus(z, g.Detach(z))) // exactly q
	}
	return s.apply(g, decoderRole, z, "z", "x", s.images(z.Dims))
}

// gradient returns nil if decoded images have a gradient by their latents, and onnx.ErrNoGradient otherwise. images is the
// shape of a batch that the decoder takes.
func (s Space) gradient(opset int, images []int) error {
	g := onnx.NewGraph(opset)
	z := g.Input("z", onnx.Float, s.Dims(images)...)
	x, err := s.Decode(g, z)
	if err != nil {
		return err
	}
	_, err = g.Gradient(x, z, x)
	return err
}

// quantize always computes in float32: half precision would select other codes.
func (s Space) quantize(g *onnx.Graph, z onnx.Value) (onnx.Value, error) {
	defer g.Half(g.Half(false))
	return s.apply(g, quantizerRole, z, "z", "q", z.Dims)
}

// Encode builds the tensor of the space for images, before quantisation.
func (s Space) Encode(g *onnx.Graph, x onnx.Value) (onnx.Value, error) {
	if !s.Latent() {
		return x, nil
	}
	return s.apply(g, encoderRole, x, "x", "z", s.Dims(x.Dims))
}

// apply adds a part to the graph.
func (s Space) apply(g *onnx.Graph, role string, v onnx.Value, in, out string, dims []int) (onnx.Value, error) {
	values, err := g.Inline(s.parts[role], map[string]onnx.Value{in: v}, map[string][]int{out: dims})
	if err != nil {
		return onnx.Value{}, fmt.Errorf("prior %s: %s: %w", s.file, role, err)
	}
	return values[out], nil
}
