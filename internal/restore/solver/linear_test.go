package solver

import (
	"math"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// linearSchedule is the noise schedule of Gaussian priors.
const linearSchedule = "linear:1e-4:0.02:1000"

// linearStage is a linear first stage between images of m values and latents of d values. The matrices have one row for each value
// of their output. With independent Gaussian latents, the restoration has a closed form for a linear operator.
type linearStage struct {
	image, latent operator.Shape
	encode        [][]float64 // d×m
	decode        [][]float64 // m×d
}

// newLinearStage returns a stage whose decoder has random orthogonal columns of length scale, and whose encoder is its left inverse.
func newLinearStage(image, latent operator.Shape, scale float64) linearStage {
	m, d := image.Size(), latent.Size()
	s := linearStage{image, latent, make([][]float64, d), make([][]float64, m)}
	for i := range s.decode {
		s.decode[i] = make([]float64, d)
	}
	draws := make([]float32, m)
	for j := range s.encode {
		noise.Normal(draws, noise.Key{77}, noise.Start, uint32(j), 1)
		q := make([]float64, m)
		for i := range q {
			q[i] = float64(draws[i])
		}
		for range 2 { // Gram-Schmidt, a second time for the rounding of the first
			for _, other := range s.encode[:j] {
				along := innerProduct(q, other)
				for i := range q {
					q[i] -= along * other[i]
				}
			}
		}
		length := math.Sqrt(innerProduct(q, q))
		for i := range q {
			q[i] /= length
		}
		s.encode[j] = q
	}
	for j, q := range s.encode {
		for i := range q {
			s.decode[i][j] = scale * q[i]
			q[i] /= scale
		}
	}
	return s
}

func innerProduct(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// write writes the bundle of the stage and of the score model of latents N(0, variance_i) into dir. The parts take batches of
// any size.
func (s linearStage) write(dir string, variance []float32) error {
	pixels, latents := s.image.Dims(-1), s.latent.Dims(-1)
	schedule, err := prior.ParseSchedule(linearSchedule)
	if err != nil {
		return err
	}
	parts := map[string]func(g *onnx.Graph) error{
		"encoder": func(g *onnx.Graph) error {
			g.Output("z", multiply(g, s.encode, g.Input("x", onnx.Float, pixels...), latents))
			return nil
		},
		"decoder": func(g *onnx.Graph) error {
			g.Output("x", multiply(g, s.decode, g.Input("z", onnx.Float, latents...), pixels))
			return nil
		},
		"unet": func(g *onnx.Graph) error {
			z := g.Input("z", onnx.Float, latents...)
			g.Output("eps", gaussianScore(g, z, g.Input("t", onnx.Int64, -1), variance, schedule))
			return nil
		},
	}
	factor := s.image.Height / s.latent.Height
	return prior.WriteBundle(dir, prior.BundleCard{
		Card: 1, Kind: "latent", Name: "linear", License: "Apache-2.0", FirstStage: prior.KL, Prediction: prior.Epsilon,
		Schedule: linearSchedule, Range: "-1..1", Channels: s.image.Channels, Latent: s.latent.Channels, Factor: factor,
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

// gaussianScore builds the noise prediction of independent values N(0, variance_i) at times of shape [N], which is exact:
// ε(x, t) = √(1−ᾱ)·x/(ᾱ·variance + 1 − ᾱ).
func gaussianScore(g *onnx.Graph, x, times onnx.Value, variance []float32, schedule prior.Schedule) onnx.Value {
	table := make([]float32, schedule.Steps())
	for i, a := range schedule.AlphaBar {
		table[i] = float32(a)
	}
	a := g.Reshape(g.Gather(g.Const(table, len(table)), times), x.Dims[0], 1, 1, 1)
	rest := g.Minus(g.Scalar(1), a)
	v := g.Const(variance, append([]int{1}, x.Dims[1:]...)...)
	return g.Div(g.Mul(g.Sqrt(rest), x), g.Add(g.Mul(a, v), rest))
}
