package onnx_test

func convLayers() map[string]layer {
	type m = map[string]any
	in := normal(2, 4, 9, 8)
	return map[string]layer{
		"3x3":            apply("Conv", ints(2, 6, 9, 8), m{"pads": ints(1, 1, 1, 1)}, in, normal(6, 4, 3, 3), normal(6)),
		"1x1":            apply("Conv", ints(2, 5, 9, 8), m{}, in, normal(5, 4, 1, 1)),
		"stride":         apply("Conv", ints(2, 6, 5, 4), m{"strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, in, normal(6, 4, 3, 3)),
		"stride 3 by 2":  apply("Conv", ints(2, 6, 3, 3), m{"strides": ints(3, 2)}, in, normal(6, 4, 2, 3)),
		"asymmetric":     apply("Conv", ints(2, 6, 8, 9), m{"pads": ints(0, 2, 2, 1), "kernel_shape": ints(4, 3)}, in, normal(6, 4, 4, 3)),
		"downsample":     apply("Conv", ints(2, 6, 4, 4), m{"strides": ints(2, 2), "pads": ints(0, 0, 1, 1)}, in, normal(6, 4, 3, 3)),
		"wide pads":      apply("Conv", ints(2, 6, 13, 10), m{"pads": ints(3, 2, 3, 2)}, in, normal(6, 4, 3, 3)),
		"dilation":       apply("Conv", ints(2, 6, 7, 8), m{"dilations": ints(3, 2), "pads": ints(2, 2, 2, 2)}, in, normal(6, 4, 3, 3)),
		"dilated stride": apply("Conv", ints(2, 6, 3, 4), m{"dilations": ints(2, 1), "strides": ints(3, 2), "pads": ints(1, 0, 1, 1)}, in, normal(6, 4, 3, 3)),
		"groups":         apply("Conv", ints(2, 6, 9, 8), m{"group": 2, "pads": ints(1, 1, 1, 1)}, in, normal(6, 2, 3, 3)),
		"depthwise":      apply("Conv", ints(2, 4, 9, 8), m{"group": 4, "pads": ints(1, 1, 1, 1)}, in, normal(4, 1, 3, 3)),
		"group stride":   apply("Conv", ints(2, 8, 5, 4), m{"group": 4, "strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, in, normal(8, 1, 3, 3)),
		"same upper":     apply("Conv", ints(2, 6, 5, 4), m{"auto_pad": "SAME_UPPER", "strides": ints(2, 2)}, in, normal(6, 4, 3, 4)),
		"same lower":     apply("Conv", ints(2, 6, 5, 4), m{"auto_pad": "SAME_LOWER", "strides": ints(2, 2)}, in, normal(6, 4, 4, 3)),
		"valid":          apply("Conv", ints(2, 6, 7, 6), m{"auto_pad": "VALID"}, in, normal(6, 4, 3, 3)),
		"1d":             apply("Conv", ints(2, 6, 5), m{"strides": ints(2), "pads": ints(0, 1)}, normal(2, 4, 11), normal(6, 4, 3)),
		"1d flipped":     apply("Conv", ints(2, 6, 12), m{"pads": ints(2, 1)}, normal(2, 4, 11), normal(6, 4, 3)),
		"3d":             apply("Conv", ints(1, 4, 5, 4, 6), m{"pads": ints(1, 1, 1, 1, 1, 1)}, normal(1, 2, 5, 4, 6), normal(4, 2, 3, 3, 3)),
		"3d stride":      apply("Conv", ints(1, 4, 3, 2, 3), m{"strides": ints(2, 2, 2), "pads": ints(1, 1, 1, 1, 1, 1)}, normal(1, 2, 5, 4, 6), normal(4, 2, 3, 3, 3)),
		"weight":         apply("Conv", ints(2, 6, 9, 8), m{"pads": ints(1, 1, 1, 1)}, in, normal(6, 4, 3, 3)).by(1),
		"weight stride":  apply("Conv", ints(2, 8, 3, 4), m{"group": 2, "strides": ints(3, 2), "pads": ints(1, 0, 1, 1)}, in, normal(8, 2, 3, 3)).by(1),
		"weight dilated": apply("Conv", ints(2, 4, 4, 4), m{"dilations": ints(2, 1), "strides": ints(2, 2), "group": 4, "pads": ints(1, 1, 1, 1)}, in, normal(4, 1, 3, 3)).by(1),
		"weight 1d":      apply("Conv", ints(2, 6, 12), m{"pads": ints(2, 1)}, normal(2, 4, 11), normal(6, 4, 3)).by(1),
		"bias":           apply("Conv", ints(2, 6, 9, 8), m{"pads": ints(1, 1, 1, 1)}, in, normal(6, 4, 3, 3), normal(6)).by(2),
	}
}

func convTransposeLayers() map[string]layer {
	type m = map[string]any
	in := normal(2, 4, 5, 6)
	return map[string]layer{
		"stride 2":         apply("ConvTranspose", ints(2, 3, 10, 12), m{"strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, in, normal(4, 3, 4, 4), normal(3)),
		"output padding":   apply("ConvTranspose", ints(2, 3, 10, 12), m{"strides": ints(2, 2), "pads": ints(1, 1, 1, 1), "output_padding": ints(1, 1)}, in, normal(4, 3, 3, 3)),
		"stride 1":         apply("ConvTranspose", ints(2, 3, 6, 6), m{"pads": ints(1, 0, 0, 2)}, in, normal(4, 3, 3, 3)),
		"asymmetric":       apply("ConvTranspose", ints(2, 3, 14, 11), m{"strides": ints(3, 2), "pads": ints(0, 2, 1, 0)}, in, normal(4, 3, 3, 3)),
		"dilation":         apply("ConvTranspose", ints(2, 3, 13, 14), m{"strides": ints(2, 2), "dilations": ints(3, 2), "pads": ints(1, 1, 1, 0)}, in, normal(4, 3, 3, 3)),
		"groups":           apply("ConvTranspose", ints(2, 6, 9, 11), m{"group": 2, "strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, in, normal(4, 3, 3, 3)),
		"output shape":     apply("ConvTranspose", ints(2, 3, 10, 11), m{"strides": ints(2, 2), "output_shape": ints(10, 11)}, in, normal(4, 3, 3, 4)),
		"odd output shape": apply("ConvTranspose", ints(2, 3, 10, 11), m{"strides": ints(2, 2), "output_shape": ints(10, 11), "auto_pad": "SAME_UPPER"}, in, normal(4, 3, 3, 4)),
		"same upper":       apply("ConvTranspose", ints(2, 3, 10, 12), m{"strides": ints(2, 2), "auto_pad": "SAME_UPPER"}, in, normal(4, 3, 3, 3)),
		"same lower":       apply("ConvTranspose", ints(2, 3, 10, 12), m{"strides": ints(2, 2), "auto_pad": "SAME_LOWER"}, in, normal(4, 3, 3, 3)),
		"valid":            apply("ConvTranspose", ints(2, 3, 11, 13), m{"strides": ints(2, 2), "auto_pad": "VALID"}, in, normal(4, 3, 3, 3)),
		"1d":               apply("ConvTranspose", ints(2, 3, 14), m{"strides": ints(2), "pads": ints(1, 1)}, normal(2, 4, 7), normal(4, 3, 4)),
		"3d":               apply("ConvTranspose", ints(1, 3, 6, 8, 4), m{"strides": ints(2, 2, 2), "pads": ints(1, 1, 1, 1, 1, 1)}, normal(1, 2, 3, 4, 2), normal(2, 3, 4, 4, 4)),
		"weight":           apply("ConvTranspose", ints(2, 6, 10, 12), m{"group": 2, "strides": ints(2, 2), "pads": ints(1, 1, 1, 1), "output_padding": ints(1, 1)}, in, normal(4, 3, 3, 3)).by(1),
		"bias":             apply("ConvTranspose", ints(2, 3, 10, 12), m{"strides": ints(2, 2), "pads": ints(1, 1, 1, 1)}, in, normal(4, 3, 4, 4), normal(3)).by(2),
	}
}
