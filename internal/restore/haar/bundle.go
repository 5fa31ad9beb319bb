// Package haar writes latent priors that need no training, for tests and for trying methods on latents.
//
// The autoencoder is the orthonormal Haar transform of square blocks, so its decoder is the inverse and the transpose of
// its encoder. Gaussian noise on the latents is Gaussian noise of equal strength on the image, and a pixel prior between
// decoder and encoder is an exact network for latents. Such a prior restores what its pixel prior restores.
package haar

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// ErrConfig: a Config is invalid.
var ErrConfig = errors.New("Haar bundle")

// Config describes a bundle. The zero value is valid.
type Config struct {
	// Levels is the number of levels of the transform, 1 to 3. A latent has 4^Levels channels per channel of the image and
	// sides divided by 2^Levels. Default: 2.
	Levels int
	// Step is the spacing of the values to which a quantiser rounds latents. 0 gives a bundle without a quantiser.
	Step float64
	// Name is the name in the card. Default: "haar".
	Name string
}

// Validate names the first field that is out of range.
func (c Config) Validate() error {
	if c.Levels < 0 || c.Levels > 3 {
		return fmt.Errorf("%w: Levels: %d is outside 1..3", ErrConfig, c.Levels)
	}
	if !(c.Step >= 0 && c.Step <= 1) {
		return fmt.Errorf("%w: Step: %g is outside 0..1", ErrConfig, c.Step)
	}
	return nil
}

// Write writes a bundle for a pixel prior, the bytes of its file, into the folder dir, which it creates.
func Write(dir string, pixels []byte, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg.Levels, cfg.Name = cmp.Or(cfg.Levels, 2), cmp.Or(cfg.Name, "haar")
	p, err := prior.Load("the pixel prior", pixels)
	if err != nil {
		return err
	}
	if p.Space().Latent() {
		return fmt.Errorf("%w: the prior %s works on latents, want one that works on pixels", ErrConfig, p.Card.Name)
	}
	w := writer{card: p.Card, factor: 1 << cfg.Levels}
	if w.network, err = modelfile.ReadModel(pixels); err != nil {
		return err
	}
	card := prior.BundleCard{
		Card: 1, Kind: "latent", Name: cfg.Name, License: p.Card.License, FirstStage: prior.KL,
		Training:   fmt.Sprintf("none: the Haar transform of %d×%d blocks around the prior %s", w.factor, w.factor, p.Card.Name),
		Prediction: p.Card.Prediction, Schedule: p.Card.Schedule, Range: p.Card.Range,
		Channels: p.Card.Channels, Latent: w.latents(), Factor: w.factor, MultipleOf: max(p.Card.MultipleOf, w.factor), Scale: 1,
	}
	parts := map[string]func(g *onnx.Graph) error{"encoder": w.encoder, "decoder": w.decoder, "unet": w.unet}
	if cfg.Step > 0 {
		card.FirstStage = prior.VQ
		parts["quantizer"] = func(g *onnx.Graph) error { return w.quantizer(g, float32(cfg.Step)) }
	}
	return prior.WriteBundle(dir, card, p.Opset(), parts)
}

// writer builds the parts of a bundle.
type writer struct {
	card    prior.Card
	factor  int
	network *modelfile.Model
}

// latents is the number of channels of latents.
func (w *writer) latents() int { return w.card.Channels * w.factor * w.factor }

// images and latent are the shapes of any batch.
func (w *writer) images() []int { return []int{-1, w.card.Channels, -1, -1} }
func (w *writer) latent() []int { return []int{-1, w.latents(), -1, -1} }

func (w *writer) encoder(g *onnx.Graph) error {
	g.Output("z", w.analyse(g, g.Input("x", onnx.Float, w.images()...)))
	return nil
}

func (w *writer) decoder(g *onnx.Graph) error {
	g.Output("x", w.synthesise(g, g.Input("z", onnx.Float, w.latent()...)))
	return nil
}

// quantizer rounds latents to multiples of step.
func (w *writer) quantizer(g *onnx.Graph, step float32) error {
	z := g.Input("z", onnx.Float, w.latent()...)
	whole := g.Apply("Round", onnx.Float, z.Dims, nil, g.Div(z, g.Scalar(step)))
	g.Output("q", g.Mul(whole, g.Scalar(step)))
	return nil
}

// unet is the pixel network between decoder and encoder.
func (w *writer) unet(g *onnx.Graph) error {
	in, out := w.network.Inputs(), w.network.Outputs()[0]
	if len(in[0].Dims) != 4 {
		in[0], in[1] = in[1], in[0]
	}
	z, t := g.Input("z", onnx.Float, w.latent()...), g.Input("t", in[1].DType, -1)
	got, err := g.Inline(w.network, map[string]onnx.Value{in[0].Name: w.synthesise(g, z), in[1].Name: t}, map[string][]int{out.Name: w.images()})
	if err != nil {
		return err
	}
	eps := got[out.Name]
	if w.card.LearnedVariance {
		eps = g.Slice(eps, 1, 0, w.card.Channels)
		eps.Dims = w.images()
	}
	g.Output("eps", w.analyse(g, eps))
	return nil
}

// analyse transforms images to latents, synthesise latents to images.
func (w *writer) analyse(g *onnx.Graph, x onnx.Value) onnx.Value {
	return w.transform(g, "Conv", x, w.latent())
}
func (w *writer) synthesise(g *onnx.Graph, z onnx.Value) onnx.Value {
	return w.transform(g, "ConvTranspose", z, w.images())
}

func (w *writer) transform(g *onnx.Graph, op string, v onnx.Value, dims []int) onnx.Value {
	f := w.factor
	kernel := g.Const(w.kernels(), w.latents(), 1, f, f)
	attrs := map[string]any{"strides": []int{f, f}, "kernel_shape": []int{f, f}, "group": w.card.Channels}
	return g.Apply(op, onnx.Float, dims, attrs, v, kernel)
}

// kernels are the basis images of a block for each channel of an image: products of the vectors of basis.
func (w *writer) kernels() []float32 {
	rows := basis(w.factor)
	var out []float32
	for range w.card.Channels {
		for _, a := range rows {
			for _, b := range rows {
				for _, y := range a {
					for _, x := range b {
						out = append(out, float32(y*x))
					}
				}
			}
		}
	}
	return out
}

// basis returns the orthonormal Haar vectors of length n, a power of two: the mean, then the differences from the largest
// to the smallest support.
func basis(n int) [][]float64 {
	mean := make([]float64, n)
	for i := range mean {
		mean[i] = 1 / math.Sqrt(float64(n))
	}
	out := [][]float64{mean}
	for support := n; support >= 2; support /= 2 {
		for begin := 0; begin < n; begin += support {
			v := make([]float64, n)
			for i := range support {
				v[begin+i] = 1 / math.Sqrt(float64(support))
				if i >= support/2 {
					v[begin+i] = -v[begin+i]
				}
			}
			out = append(out, v)
		}
	}
	return out
}
