package operator

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// Colorize is the task of giving a grey image its colours.
const Colorize = "colorize"

// colours is the number of channels of an image in colour.
const colours = 3

// colorize is y = (r·R + g·G + b·B)/(r + g + b), one channel. The default weights are those of luma in ITU-R BT.601, with which
// image programs convert to grey.
func colorize() Definition {
	return Definition{
		Label: "Colorization", Doc: "weighted mean of red, green and blue",
		Parameters: parameter.List{
			{Name: "red", Default: 0.299, Max: 1, Doc: "weight of red in grey, divided by the sum of the weights"},
			{Name: "green", Default: 0.587, Max: 1, Doc: "weight of green"},
			{Name: "blue", Default: 0.114, Max: 1, Doc: "weight of blue"},
		},
		Linear: true, Grey: true, Local: true,
		Guess: "the colours are a guess: with the bundled prior the grey picture was closer to the truth on 18 of 38 photographs; see docs/restore.md",
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			w, err := greyWeights(p)
			if err != nil {
				return Expression{}, err
			}
			weights := single(w)
			return Expression{
				Measurement: []int{1, s.Height, s.Width},
				Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
					return g.ReduceSum(g.Mul(x, g.Const(weights, 1, colours, 1, 1)), 1)
				},
				Adjoint: func(g *onnx.Graph, y, _ onnx.Value) onnx.Value {
					return g.Mul(y, g.Const(weights, 1, colours, 1, 1))
				},
				Baseline: func(y []float32) []float32 { return slices.Repeat(y, colours) },
			}, nil
		},
		SVD: func(_ Shape, p map[string]float64) (*SVD, error) {
			w, err := greyWeights(p)
			if err != nil {
				return nil, err
			}
			return weightedSVD(w), nil
		},
	}
}

// greyWeights returns the weights of red, green and blue, with the sum 1.
func greyWeights(p map[string]float64) ([]float64, error) {
	w := []float64{p["red"], p["green"], p["blue"]}
	sum := floats.Sum(w)
	if sum <= 0 {
		return nil, fmt.Errorf("%w red, green, blue: all weights are 0; one of them must be above 0", ErrParam)
	}
	floats.Scale(1/sum, w)
	return w, nil
}

func single(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// weightedSVD is the decomposition of the sum of the channels with weights w. It acts on the channels of each pixel: the only
// singular value is ‖w‖, with the right vector w/‖w‖, and a Householder reflection completes the basis.
func weightedSVD(w []float64) *SVD {
	norm := floats.Norm(w, 2)
	// The reflection H = 1 − 2·n·nᵀ with n ∝ w/‖w‖ + e₁ maps e₁ to −w/‖w‖; −H has w/‖w‖ as its first column. All weights are at least 0,
	// so that nothing cancels.
	n := slices.Clone(w)
	floats.Scale(1/norm, n)
	n[0]++
	floats.Scale(1/floats.Norm(n, 2), n)
	v := axis.Fill(colours, colours, func(i, j int) float64 {
		if i == j {
			return 2*n[i]*n[j] - 1
		}
		return 2 * n[i] * n[j]
	})
	// −H is symmetric: V = Vᵀ.
	mix := func(g *onnx.Graph, x onnx.Value) onnx.Value {
		pixels := x.Dims[2] * x.Dims[3]
		mixed := g.MatMul(v.Value(g), g.Reshape(x, x.Dims[0], colours, pixels))
		return g.Reshape(mixed, x.Dims...)
	}
	first := func(g *onnx.Graph, value float64) onnx.Value {
		return g.Const([]float32{float32(value), 0, 0}, 1, colours, 1, 1)
	}
	return &SVD{
		V: mix, Vt: mix,
		Ut: func(g *onnx.Graph, y onnx.Value) onnx.Value { return g.Mul(y, first(g, 1)) },
		Values: func(g *onnx.Graph, _ onnx.Value, least float64) onnx.Value {
			if norm < least {
				return first(g, 0)
			}
			return first(g, norm)
		},
		Paired: func(g *onnx.Graph, _ onnx.Value) onnx.Value { return first(g, 1) },
	}
}
