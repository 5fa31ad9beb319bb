// Package linear writes latent priors whose first stage is a matrix and whose latents are independent and Gaussian. The
// restoration with such a prior has a closed form for a linear operator, with which tests and measurements compare.
package linear

import (
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// Schedule is the noise schedule of the priors.
const Schedule = "linear:1e-4:0.02:1000"

// Stage is a linear first stage between images of m values and latents of d values. The matrices have one row for each value
// of their output.
type Stage struct {
	Image, Latent operator.Shape
	Encode        [][]float64 // d×m
	Decode        [][]float64 // m×d
	// Step is the distance of the latents to which a quantiser rounds before decoding. 0: no quantiser.
	Step float64
}

// New returns a stage whose decoder has random orthogonal columns of length scale, and whose encoder is its left inverse.
func New(image, latent operator.Shape, scale float64) Stage {
	m, d := image.Size(), latent.Size()
	s := Stage{Image: image, Latent: latent, Encode: make([][]float64, d), Decode: make([][]float64, m)}
	for i := range s.Decode {
		s.Decode[i] = make([]float64, d)
	}
	draws := make([]float32, m)
	for j := range s.Encode {
		noise.Normal(draws, noise.Key{77}, noise.Start, uint32(j), 1)
		q := make([]float64, m)
		for i := range q {
			q[i] = float64(draws[i])
		}
		for range 2 { // Gram-Schmidt, a second time for the rounding of the first
			for _, other := range s.Encode[:j] {
				along := dot(q, other)
				for i := range q {
					q[i] -= along * other[i]
				}
			}
		}
		length := math.Sqrt(dot(q, q))
		for i := range q {
			q[i] /= length
		}
		s.Encode[j] = q
	}
	for j, q := range s.Encode {
		for i := range q {
			s.Decode[i][j] = scale * q[i]
			q[i] /= scale
		}
	}
	return s
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// Write writes the bundle of the stage and of the score model of latents N(0, variance_i) into dir. The parts take batches of
// any size.
func (s Stage) Write(dir string, variance []float32) error {
	pixels, latents := s.Image.Dims(-1), s.Latent.Dims(-1)
	schedule, err := prior.ParseSchedule(Schedule)
	if err != nil {
		return err
	}
	parts := map[string]func(g *onnx.Graph) error{
		"encoder": func(g *onnx.Graph) error {
			g.Output("z", multiply(g, s.Encode, g.Input("x", onnx.Float, pixels...), latents))
			return nil
		},
		"decoder": func(g *onnx.Graph) error {
			g.Output("x", multiply(g, s.Decode, g.Input("z", onnx.Float, latents...), pixels))
			return nil
		},
		"unet": func(g *onnx.Graph) error {
			z := g.Input("z", onnx.Float, latents...)
			g.Output("eps", Score(g, z, g.Input("t", onnx.Int64, -1), variance, schedule))
			return nil
		},
	}
	stage := prior.KL
	if s.Step > 0 {
		stage = prior.VQ
		parts["quantizer"] = func(g *onnx.Graph) error {
			step := g.Scalar(float32(s.Step))
			z := g.Div(g.Input("z", onnx.Float, latents...), step)
			g.Output("q", g.Mul(g.Apply("Round", onnx.Float, latents, nil, z), step))
			return nil
		}
	}
	factor := s.Image.Height / s.Latent.Height
	return prior.WriteBundle(dir, prior.BundleCard{
		Card: 1, Kind: "latent", Name: "linear", License: "Apache-2.0", FirstStage: stage, Prediction: prior.Epsilon,
		Schedule: Schedule, Range: "-1..1", Channels: s.Image.Channels, Latent: s.Latent.Channels, Factor: factor,
		MultipleOf: factor, Scale: 1,
	}, onnx.DefaultOpset, parts)
}

// multiply returns a matrix times the values of each image or latent, in the shape dims.
func multiply(g *onnx.Graph, rows [][]float64, v onnx.Value, dims []int) onnx.Value {
	in, out := len(rows[0]), len(rows)
	columns := make([]float32, in*out)
	for i, r := range rows {
		for j, x := range r {
			columns[j*out+i] = float32(x)
		}
	}
	return g.Reshape(g.MatMul(g.Reshape(v, -1, in), g.Const(columns, in, out)), dims...)
}

// Score builds the noise prediction of independent values N(0, variance_i) at times of shape [N], which is exact:
// ε(x, t) = √(1−ᾱ)·x/(ᾱ·variance + 1 − ᾱ).
func Score(g *onnx.Graph, x, times onnx.Value, variance []float32, schedule prior.Schedule) onnx.Value {
	table := make([]float32, schedule.Steps())
	for i, a := range schedule.AlphaBar {
		table[i] = float32(a)
	}
	a := g.Reshape(g.Gather(g.Const(table, len(table)), times), x.Dims[0], 1, 1, 1)
	rest := g.Minus(g.Scalar(1), a)
	v := g.Const(variance, append([]int{1}, x.Dims[1:]...)...)
	return g.Div(g.Mul(g.Sqrt(rest), x), g.Add(g.Mul(a, v), rest))
}
