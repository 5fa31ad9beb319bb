package operator

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// NonlinearDeblur is the task of undoing the blur of a camera.
const NonlinearDeblur = "nonlinear_deblur"

// nonlinearDeblur is the blur of a camera: motion blurs linear light, the sensor saturates, and
// the display curve is applied afterwards.
//
//	p = clip(v/2 + 1/2, 0, 1)           stored value
//	l = (p·D + c^(1/γ))^γ − c           linear light, D = (1+c)^(1/γ) − c^(1/γ)
//	s = clip(gain·(k ⋆ l), 0, 1)        exposure with saturation
//	y = 2·((s + c)^(1/γ) − c^(1/γ))/D − 1
//
// The toe c keeps the display curve differentiable at black.
func nonlinearDeblur() Definition {
	return Definition{
		Label: "Nonlinear deblurring", Doc: "motion blur in linear light, saturation, display curve",
		Parameters: append(motionParameters(31), parameter.List{
			{Name: "gain", Default: 1.2, Max: 8, Open: true, Doc: "exposure before saturation"},
			{Name: "gamma", Default: 2.2, Min: 1, Max: 4, Doc: "exponent of the display curve"},
			{Name: "toe", Default: 0.01, Max: 0.5, Open: true, Doc: "offset of the display curve at black"},
		}...),
		Dense: 1.5, Long: true,
		Input: "kernel",
		Build: func(s Shape, p map[string]float64) (Expression, error) {
			filter, v, err := newMotion(s, p["size"], p["intensity"])
			if err != nil {
				return Expression{}, err
			}
			toe, gamma := p["toe"], p["gamma"]
			root := math.Pow(toe, 1/gamma)
			span := math.Pow(1+toe, 1/gamma) - root
			forward := func(g *onnx.Graph, x, k onnx.Value) onnx.Value {
				scalar := func(v float64) onnx.Value { return g.Scalar(float32(v)) }
				stored := g.Clip(g.Add(g.Mul(x, scalar(0.5)), scalar(0.5)), 0, 1)
				light := g.Minus(g.Pow(g.Add(g.Mul(stored, scalar(span)), scalar(root)), float32(gamma)), scalar(toe))
				exposed := g.Clip(g.Mul(filter.Apply(g, light, k), scalar(p["gain"])), 0, 1)
				curve := g.Pow(g.Add(exposed, scalar(toe)), float32(1/gamma))
				return g.Minus(g.Mul(curve, scalar(2/span)), scalar(1+2*root/span))
			}
			return Expression{Forward: forward, Variable: v, Spectrum: filter.Spectrum()}, nil
		},
	}
}
