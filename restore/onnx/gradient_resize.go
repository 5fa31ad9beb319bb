package onnx

import (
	"fmt"
	"math"

	"ddiff/internal/restore/onnx/infer"
)

// resizeRule builds the gradient of a Resize, which is a linear map along each dimension.
func resizeRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	x := n.Inputs[0]
	if k > 0 {
		return Value{}, n.Refuse("scales that depend on the input")
	}
	for name, known := range map[string]string{"antialias": "0", "keep_aspect_ratio_policy": "stretch"} {
		if v, ok := n.Attrs[name]; ok && fmt.Sprint(v) != known {
			return Value{}, n.Refuse("%s %v", name, v)
		}
	}
	scales, err := g.resizeScales(n, dy.Dims)
	if err != nil {
		return Value{}, err
	}
	maps := make([]*axisMap, x.Rank())
	for i, in := range x.Dims {
		if in == dy.Dims[i] && scales[i] == 1 {
			continue
		}
		if maps[i], err = resizeMap(n, in, dy.Dims[i], scales[i]); err != nil {
			return Value{}, err
		}
	}
	return g.applyTransposed(dy, maps), nil
}

// resizeScales returns the factor of each dimension: the given one, else the ratio of the sides.
func (g *Graph) resizeScales(n *infer.Node, out []int) ([]float32, error) {
	x := n.Inputs[0]
	scales := make([]float32, x.Rank())
	for i, in := range x.Dims {
		scales[i] = float32(out[i]) / float32(in)
	}
	if len(n.Inputs) < 3 || n.Inputs[2].Name == "" {
		return scales, nil
	}
	given, ok := g.facts.NumbersOf(n.Inputs[2])
	if !ok {
		return nil, n.Refuse("scales that are not constant")
	}
	axes := n.Integers("axes")
	for i, s := range given {
		at := i
		if axes != nil {
			at = (axes[i] + x.Rank()) % x.Rank()
		}
		scales[at] = float32(s)
	}
	return scales, nil
}

// resizeMap returns the map along one dimension. Positions are computed in float32 as the runtime does, so that both
// round to the same pixel.
func resizeMap(n *infer.Node, in, out int, scale float32) (*axisMap, error) {
	m := &axisMap{in: in, rows: make([][]tap, out)}
	for o := range m.rows {
		at, err := resizePosition(n, o, in, out, scale)
		if err != nil {
			return nil, err
		}
		switch interpolation := n.Text("mode", "nearest"); interpolation {
		case "nearest":
			mode := n.Text("nearest_mode", "round_prefer_floor")
			round := roundings[mode]
			if round == nil {
				return nil, n.Refuse("nearest_mode %s", mode)
			}
			m.rows[o] = []tap{{min(max(int(round(float64(at))), 0), in-1), 1}}
		case "linear":
			at = min(max(at, 0), float32(in-1))
			i := int(at)
			m.rows[o] = []tap{{i, 1 - (at - float32(i))}, {min(i+1, in-1), at - float32(i)}}
		case "cubic":
			m.rows[o] = cubic(at, in, n.Float("cubic_coeff_a", -0.75), n.Integer("exclude_outside", 0) != 0)
		default:
			return nil, n.Refuse("mode %s", interpolation)
		}
	}
	return m, nil
}

// resizePosition returns the position of output o in the input.
func resizePosition(n *infer.Node, o, in, out int, scale float32) (float32, error) {
	mode := n.Text("coordinate_transformation_mode", "half_pixel")
	half := (float32(o)+0.5)/scale - 0.5
	switch mode {
	case "half_pixel":
		return half, nil
	case "half_pixel_symmetric":
		adjustment := float32(out) / (scale * float32(in))
		return float32(in)/2*(1-adjustment) + half, nil
	case "pytorch_half_pixel":
		if out == 1 {
			return 0, nil
		}
		return half, nil
	case "align_corners":
		if out == 1 {
			return 0, nil
		}
		return float32(o) * float32(in-1) / float32(out-1), nil
	case "asymmetric":
		return float32(o) / scale, nil
	}
	return 0, n.Refuse("coordinate_transformation_mode %s", mode)
}

// roundings choose the pixel of a position.
var roundings = map[string]func(x float64) float64{
	"round_prefer_floor": func(x float64) float64 { return math.Ceil(x - 0.5) },
	"round_prefer_ceil":  func(x float64) float64 { return math.Floor(x + 0.5) },
	"floor":              math.Floor,
	"ceil":               math.Ceil,
}

// cubic returns the weights of Keys' kernel with parameter a. Pixels outside repeat the border, or have no weight.
func cubic(at float32, in int, a float32, exclude bool) []tap {
	first := int(math.Floor(float64(at)))
	s := at - float32(first)
	weights := [4]float32{
		((a*(s+1)-5*a)*(s+1)+8*a)*(s+1) - 4*a,
		((a+2)*s-(a+3))*s*s + 1,
		((a+2)*(1-s)-(a+3))*(1-s)*(1-s) + 1,
		((a*(2-s)-5*a)*(2-s)+8*a)*(2-s) - 4*a,
	}
	var row []tap
	sum := float32(0)
	for k, w := range weights {
		i := first - 1 + k
		if exclude && (i < 0 || i >= in) {
			continue
		}
		row = append(row, tap{min(max(i, 0), in-1), w})
		sum += w
	}
	if exclude {
		for k := range row {
			row[k].weight /= sum
		}
	}
	return row
}
