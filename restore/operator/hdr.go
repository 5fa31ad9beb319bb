package operator

import (
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// HDR is the task of high dynamic range.
const HDR = "hdr"

// hdr is y = clip(scale·x, −1, 1): the bright and dark ends saturate.
func hdr() Definition {
	return Definition{
		Label: "High dynamic range", Doc: "twice the dynamic range, clipped to [-1, 1]",
		Parameters: parameter.List{
			{Name: "scale", Default: 2, Max: 16, Open: true, Doc: "gain before clipping"},
		},
		Local: true,
		Build: func(_ Shape, p map[string]float64) (Expression, error) {
			scale := float32(p["scale"])
			return Expression{
				Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
					return g.Clip(g.Mul(x, g.Scalar(scale)), -1, 1)
				},
				Inverse: func(g *onnx.Graph, y onnx.Value) onnx.Value { return g.Div(y, g.Scalar(scale)) },
				// Jᵀ·w is 0 at a saturated entry. If y lies at the other end of the range there, a gradient step never corrects it.
				Recover: func(g *onnx.Graph, x, w, r onnx.Value, limit float32) onnx.Value {
					scaled := g.Mul(x, g.Scalar(scale))
					y := g.Clip(scaled, -1, 1)
					number := func(op string, a, b onnx.Value) onnx.Value {
						return g.Cast(g.Apply(op, onnx.Bool, a.Dims, nil, a, b), onnx.Float)
					}
					inside := number("Equal", scaled, y)
					// y is 1 or −1 outside, so that −r·y is the distance by which r leads back.
					back := number("Greater", g.Neg(g.Mul(r, y)), g.Scalar(limit))
					return g.Mul(g.Mul(w, g.Scalar(scale)), g.Max(inside, back))
				},
				// Clipped values stay clipped.
				Baseline: func(y []float32) []float32 {
					out := make([]float32, len(y))
					for i, v := range y {
						out[i] = v / scale
					}
					return out
				},
			}, nil
		},
	}
}
