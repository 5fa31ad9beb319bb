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
		Name: HDR, Label: "High dynamic range", Doc: "twice the dynamic range, clipped to [-1, 1]",
		Parameters: parameter.List{
			{Name: "scale", Default: 2, Max: 16, Open: true, Doc: "gain before clipping"},
		},
		Build: func(_ Shape, p map[string]float64) (Expression, error) {
			scale := float32(p["scale"])
			return Expression{
				Forward: func(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
					return g.Clip(g.Mul(x, g.Scalar(scale)), -1, 1)
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
