package operator

import "ddiff/restore/onnx"

// hdr is y = clip(scale·x, −1, 1): the bright and dark ends saturate.
type hdr struct {
	shape Shape
	scale float32
}

func hdrTask() task {
	return task{
		name: HDR, about: "twice the dynamic range, clipped to [-1, 1]",
		defaults: map[string]float64{"scale": 2},
		make: func(s Shape, p map[string]float64) (definition, error) {
			if err := positive(p, "scale", 16); err != nil {
				return nil, err
			}
			return &hdr{s, float32(p["scale"])}, nil
		},
	}
}

func (o *hdr) measurement() []int { return []int{o.shape.Channels, o.shape.Height, o.shape.Width} }

func (o *hdr) forward(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
	return g.Clip(g.Mul(x, g.Scalar(o.scale)), -1, 1)
}

// baseline undoes the gain; what was clipped stays clipped.
func (o *hdr) baseline(y []float32) []float32 {
	out := make([]float32, len(y))
	for i, v := range y {
		out[i] = v / o.scale
	}
	return out
}
