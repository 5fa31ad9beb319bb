package onnx_test

import (
	"slices"
	"testing"

	"ddiff/restore/onnx"
)

func resizeLayers() map[string]layer {
	type m = map[string]any
	x := normal(1, 2, 5, 6)
	resized := func(attrs m, factor ...float32) layer {
		out := ints()
		for i, f := range factor {
			out = append(out, int(float32(x.dims[i])*f))
		}
		return apply("Resize", out, attrs, x, omitted(), given(factor...))
	}
	to := func(attrs m, sides ...int) layer {
		return apply("Resize", ints(1, 2, sides[0], sides[1]), attrs, x, omitted(), omitted(), integers(1, 2, sides[0], sides[1]))
	}
	layers := map[string]layer{
		"nearest twice":   resized(m{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, 1, 1, 2, 2),
		"nearest 3 by 2":  resized(m{"mode": "nearest"}, 1, 1, 3, 2),
		"nearest smaller": resized(m{"mode": "nearest"}, 1, 1, 0.6, 0.5),
		"channels":        resized(m{"mode": "nearest"}, 1, 2, 1, 2),
		"axes":            apply("Resize", ints(1, 2, 10, 6), m{"mode": "linear", "axes": ints(-2)}, x, omitted(), given(2)).at(18),
		"1d":              apply("Resize", ints(1, 2, 14), m{"mode": "linear"}, normal(1, 2, 7), omitted(), given(1, 1, 2)),
		"3d":              apply("Resize", ints(1, 2, 6, 4, 10), m{"mode": "nearest"}, normal(1, 2, 3, 4, 5), omitted(), given(1, 1, 2, 1, 2)),
		"one pixel":       to(m{"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, 1, 7),
		"cubic sharp":     resized(m{"mode": "cubic", "cubic_coeff_a": float32(-0.5), "exclude_outside": 1}, 1, 1, 2, 1.5),
	}
	for _, mode := range []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"} {
		for _, at := range []string{"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"} {
			attrs := m{"mode": "nearest", "nearest_mode": mode, "coordinate_transformation_mode": at}
			layers["nearest "+mode+" "+at+" larger"], layers["nearest "+mode+" "+at+" smaller"] = to(attrs, 11, 9), to(attrs, 3, 4)
		}
	}
	for _, mode := range []string{"linear", "cubic"} {
		for _, at := range []string{"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"} {
			attrs := m{"mode": mode, "coordinate_transformation_mode": at}
			layers[mode+" "+at+" larger"], layers[mode+" "+at+" smaller"] = to(attrs, 11, 9), to(attrs, 3, 4)
			layers[mode+" "+at+" scales"] = resized(attrs, 1, 1, 2.3, 0.7)
		}
	}
	layers["linear symmetric"] = resized(m{"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}, 1, 1, 2.3, 1.7).at(19)
	return layers
}

func poolLayers() map[string]layer {
	type m = map[string]any
	x, distinct := normal(2, 3, 8, 6), apart(2, 3, 8, 6)
	return map[string]layer{
		"average":         apply("AveragePool", ints(2, 3, 4, 3), m{"kernel_shape": ints(2, 2), "strides": ints(2, 2)}, x),
		"average rest":    apply("AveragePool", ints(2, 3, 2, 2), m{"kernel_shape": ints(3, 3), "strides": ints(3, 3)}, x),
		"average overlap": apply("AveragePool", ints(2, 3, 4, 3), m{"kernel_shape": ints(3, 3), "strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, x),
		"average borders": apply("AveragePool", ints(2, 3, 4, 3), m{"kernel_shape": ints(3, 3), "strides": ints(2, 2), "pads": ints(1, 1, 1, 1), "count_include_pad": 1}, x),
		"average ceil":    apply("AveragePool", ints(2, 3, 3, 2), m{"kernel_shape": ints(3, 3), "strides": ints(3, 3), "ceil_mode": 1}, x),
		"average ceil borders": apply("AveragePool", ints(2, 3, 4, 3),
			m{"kernel_shape": ints(3, 3), "strides": ints(3, 3), "pads": ints(1, 1, 1, 1), "ceil_mode": 1, "count_include_pad": 1}, normal(2, 3, 9, 6)).at(19),
		"average dilated": apply("AveragePool", ints(2, 3, 4, 2), m{"kernel_shape": ints(3, 3), "dilations": ints(2, 2)}, x).at(19),
		"average same":    apply("AveragePool", ints(2, 3, 4, 3), m{"kernel_shape": ints(3, 3), "strides": ints(2, 2), "auto_pad": "SAME_UPPER"}, x),
		"average 1d":      apply("AveragePool", ints(2, 3, 4), m{"kernel_shape": ints(2), "strides": ints(2)}, normal(2, 3, 8)),
		"average 3d":      apply("AveragePool", ints(2, 3, 2, 2, 2), m{"kernel_shape": ints(2, 2, 2), "strides": ints(2, 2, 2)}, normal(2, 3, 4, 4, 4)),
		"global":          apply("GlobalAveragePool", ints(2, 3, 1, 1), nil, x),
		"max":             apply("MaxPool", ints(2, 3, 4, 3), m{"kernel_shape": ints(2, 2), "strides": ints(2, 2)}, distinct),
		"max overlap":     apply("MaxPool", ints(2, 3, 4, 3), m{"kernel_shape": ints(3, 3), "strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, distinct),
		"max ceil":        apply("MaxPool", ints(2, 3, 3, 2), m{"kernel_shape": ints(3, 3), "strides": ints(3, 3), "ceil_mode": 1}, distinct),
		"max dilated":     apply("MaxPool", ints(2, 3, 4, 2), m{"kernel_shape": ints(3, 3), "dilations": ints(2, 2)}, distinct).at(18),
		"max 1d":          apply("MaxPool", ints(2, 3, 4), m{"kernel_shape": ints(2), "strides": ints(2)}, apart(2, 3, 8)),
	}
}

func normLayers() map[string]layer {
	type m = map[string]any
	x := normal(2, 6, 4, 5)
	scale, shift := normal(6), normal(6)
	layers := map[string]layer{
		"instance":           apply("InstanceNormalization", x.dims, m{"epsilon": float32(1e-3)}, x, scale, shift),
		"instance of groups": apply("InstanceNormalization", ints(2, 3, 40), m{}, normal(2, 3, 40), given(1, 1, 1), given(0, 0, 0)),
		"instance scale":     apply("InstanceNormalization", x.dims, m{}, x, scale, shift).by(1),
		"instance shift":     apply("InstanceNormalization", x.dims, m{}, x, scale, shift).by(2),
		"group of set 18":    apply("GroupNormalization", x.dims, m{"num_groups": 3}, x, normal(3), normal(3)).at(18),
		"group of set 21":    apply("GroupNormalization", x.dims, m{"num_groups": 3, "epsilon": float32(1e-2)}, x, scale, shift).at(21),
		"group scale":        apply("GroupNormalization", x.dims, m{"num_groups": 3}, x, scale, shift).at(21).by(1),
		"group shift":        apply("GroupNormalization", x.dims, m{"num_groups": 3}, x, scale, shift).at(21).by(2),
		"layer":              apply("LayerNormalization", ints(2, 7, 12), m{}, normal(2, 7, 12), normal(12), normal(12)),
		"layer of two axes":  apply("LayerNormalization", x.dims, m{"axis": 2, "epsilon": float32(1e-2)}, x, normal(4, 5)),
		"layer scale":        apply("LayerNormalization", ints(2, 7, 12), m{}, normal(2, 7, 12), normal(12), normal(12)).by(1),
		"layer shift":        apply("LayerNormalization", ints(2, 7, 12), m{}, normal(2, 7, 12), normal(12), normal(12)).by(2),
	}
	for k, name := range []string{"batch", "batch scale", "batch shift"} {
		layers[name] = apply("BatchNormalization", x.dims, m{"epsilon": float32(1e-2)}, x, scale, shift, normal(6), positive(6)).by(k)
	}
	return layers
}

func softmaxLayers() map[string]layer {
	type m = map[string]any
	x := normal(2, 3, 5, 6)
	return map[string]layer{
		"last":          apply("Softmax", x.dims, nil, x),
		"channels":      apply("Softmax", x.dims, m{"axis": 1}, x),
		"logarithm":     apply("LogSoftmax", x.dims, m{"axis": -2}, x),
		"logarithm end": apply("LogSoftmax", x.dims, nil, x),
	}
}

// Of equal values, the first one gets the gradient of a MaxPool. Normalisations and norms of zeros have finite gradients.
func TestGradientLayersAtZero(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	x, p := normal(1, 1, 2, 4), m{"kernel_shape": ints(2, 2), "strides": ints(2, 2)}
	for name, c := range map[string]struct {
		layer layer
		want  []float32
	}{
		"max":      {apply("MaxPool", ints(1, 1, 1, 2), p, x), []float32{1, 0, 1, 0, 0, 0, 0, 0}},
		"instance": {apply("InstanceNormalization", x.dims, m{}, x, given(1), given(0)), make([]float32, 8)},
		"layer":    {apply("LayerNormalization", x.dims, m{}, x, given(1, 1, 1, 1)), make([]float32, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, x, seed, _, dx, err := c.layer.gradient()
			must(t, err)
			g.Output("dx", dx)
			e := newEvaluation(t, g, []onnx.Value{x, seed}, onnx.Value{Name: "dx", DType: onnx.Float, Dims: dx.Dims})
			if got := e.run(make([]float32, 8), slices.Repeat([]float32{1}, seed.Size()))[0]; !slices.Equal(got, c.want) {
				t.Errorf("gradient %v, want %v", got, c.want)
			}
		})
	}
}
