package onnx

import "ddiff/restore/onnx/onnxpb"

// elementwiseShapes are the inferences of operations that compute every element by itself, and of those that change no
// shape.
var elementwiseShapes = func() map[string]inference {
	out := map[string]inference{
		"Cast": castShape, "CastLike": func(_ *facts, n *node) error {
			n.set(0, n.inputs[1].DType, n.inputs[0].Dims)
			return nil
		},
		"Where": whereShape, "Dropout": dropoutShape,
	}
	for _, op := range []string{
		"Abs", "Neg", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
		"Tanh", "Sigmoid", "Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
		"ThresholdedRelu", "Gelu", "Erf", "Swish", "Mish", "Reciprocal", "Sign", "Floor", "Ceil", "Round", "Clip", "Identity",
		"Not", "Softmax", "LogSoftmax", "Hardmax", "InstanceNormalization", "GroupNormalization", "BatchNormalization",
		"LpNormalization", "LRN", "MeanVarianceNormalization", "RMSNormalization", "CumSum", "Trilu", "ScatterND", "ScatterElements",
		"RotaryEmbedding",
	} {
		out[op] = sameShape
	}
	for _, op := range []string{"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean"} {
		out[op] = func(_ *facts, n *node) error { return broadcastShape(n, n.inputs[0].DType) }
	}
	for _, op := range []string{"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor", "IsNaN", "IsInf"} {
		out[op] = func(_ *facts, n *node) error { return broadcastShape(n, Bool) }
	}
	return out
}()

func sameShape(_ *facts, n *node) error {
	n.set(0, n.inputs[0].DType, n.inputs[0].Dims)
	if len(n.outputs) > 1 {
		for _, v := range n.outputs[1:] {
			if v.Name != "" {
				return unknown("a further output")
			}
		}
	}
	return nil
}

func broadcastShape(n *node, t DType) error {
	dims := n.inputs[0].Dims
	for _, in := range n.inputs[1:] {
		var ok bool
		if dims, ok = broadcast(dims, in.Dims); !ok {
			return misfit(n)
		}
	}
	n.set(0, t, dims)
	return nil
}

func whereShape(_ *facts, n *node) error { return broadcastShape(n, n.inputs[1].DType) }

func castShape(_ *facts, n *node) error {
	n.set(0, DType(n.integer("to", 0)), n.inputs[0].Dims)
	return nil
}

func dropoutShape(_ *facts, n *node) error {
	n.set(0, n.inputs[0].DType, n.inputs[0].Dims)
	n.set(1, Bool, n.inputs[0].Dims)
	return nil
}

// sourceShapes are the inferences of operations whose results are shapes or constants.
var sourceShapes = map[string]inference{
	"Shape": func(_ *facts, n *node) error {
		n.set(0, Int64, []int{len(shapeOf(n))})
		return nil
	},
	"Size": func(_ *facts, n *node) error {
		n.set(0, Int64, nil)
		return nil
	},
	"Constant":        constantShape,
	"ConstantOfShape": constantOfShape,
	"Range":           rangeShape,
	"RandomNormalLike": func(_ *facts, n *node) error {
		n.set(0, DType(n.integer("dtype", int(n.inputs[0].DType))), n.inputs[0].Dims)
		return nil
	},
	"EyeLike": func(_ *facts, n *node) error {
		n.set(0, DType(n.integer("dtype", int(n.inputs[0].DType))), n.inputs[0].Dims)
		return nil
	},
	"OneHot": func(f *facts, n *node) error {
		depth, ok := f.literalOf(n.inputs[1].Name)
		if !ok {
			return unknown("the depth")
		}
		in := n.inputs[0].Dims
		ax := axis(n.integer("axis", -1), len(in)+1)
		dims := append(append([]int(nil), in[:ax]...), depth.round()[0])
		n.set(0, n.inputs[2].DType, append(dims, in[ax:]...))
		return nil
	},
}

// shapeOf returns the dimensions that a Shape returns.
func shapeOf(n *node) []int {
	dims := n.inputs[0].Dims
	start, end := n.integer("start", 0), n.integer("end", len(dims))
	c := makeCut(0, start, end, 1, len(dims))
	return dims[c.start : c.start+c.count]
}

// constantOf returns the tensor of a Constant.
func constantOf(n *node) (literal, bool) {
	for name, a := range n.attrs {
		switch v := a.(type) {
		case *onnxpb.TensorProto:
			return decode(v)
		case int:
			return literal{dtype: Int64, integers: []int{v}}, name == "value_int"
		case []int:
			return literal{dtype: Int64, dims: []int{len(v)}, integers: v}, name == "value_ints"
		case float32:
			return literal{dtype: Float, numbers: []float64{float64(v)}}, name == "value_float"
		case []float32:
			l := literal{dtype: Float, dims: []int{len(v)}, numbers: []float64{}}
			for _, x := range v {
				l.numbers = append(l.numbers, float64(x))
			}
			return l, name == "value_floats"
		}
	}
	return literal{}, false
}

func constantShape(_ *facts, n *node) error {
	if t, ok := n.attrs["value"].(*onnxpb.TensorProto); ok {
		n.set(0, DType(t.DataType), ints(t.Dims))
		return nil
	}
	l, ok := constantOf(n)
	if !ok {
		return unknown("a constant of another kind")
	}
	n.set(0, l.dtype, l.dims)
	return nil
}

func constantOfShape(f *facts, n *node) error {
	dims, ok := f.integersOf(n.inputs[0])
	if !ok {
		return unknown("the shape")
	}
	t := Float
	if v, ok := n.attrs["value"].(*onnxpb.TensorProto); ok {
		t = DType(v.DataType)
	}
	n.set(0, t, dims)
	return nil
}

func rangeShape(f *facts, n *node) error {
	in, ok := f.literalsOf(n)
	if !ok {
		return unknown("the range")
	}
	l, ok := foldRange(n, in)
	if !ok {
		return unknown("the range")
	}
	n.set(0, n.inputs[0].DType, l.dims)
	return nil
}
