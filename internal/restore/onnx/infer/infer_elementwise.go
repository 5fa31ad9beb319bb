package infer

import "ddiff/internal/restore/onnx/onnxpb"

// elementwiseShapes are the inferences of operations that compute every element by itself, and of those that change no
// shape.
var elementwiseShapes = func() map[string]inference {
	out := map[string]inference{
		"Cast":     func(_ *Facts, n *Node) error { return n.returns(DType(n.Integer("to", 0)), n.Inputs[0].Dims) },
		"CastLike": func(_ *Facts, n *Node) error { return n.returns(n.Inputs[1].DType, n.Inputs[0].Dims) },
		"Where":    func(_ *Facts, n *Node) error { return broadcastShape(n, n.Inputs[1].DType) },
		"Dropout":  dropoutShape,
	}
	for _, op := range []string{
		"Abs", "Neg", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
		"Tanh", "Sigmoid", "Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
		"ThresholdedRelu", "Gelu", "Erf", "Mish", "Reciprocal", "Sign", "Floor", "Ceil", "Round", "Clip", "Identity",
		"Not", "Softmax", "LogSoftmax", "Hardmax", "InstanceNormalization", "GroupNormalization", "BatchNormalization",
		"CumSum", "Trilu", "ScatterND", "ScatterElements",
	} {
		out[op] = sameShape
	}
	for _, op := range []string{"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean"} {
		out[op] = func(_ *Facts, n *Node) error { return broadcastShape(n, n.Inputs[0].DType) }
	}
	for _, op := range []string{"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor", "IsNaN", "IsInf"} {
		out[op] = func(_ *Facts, n *Node) error { return broadcastShape(n, Bool) }
	}
	return out
}()

func sameShape(_ *Facts, n *Node) error {
	n.set(0, n.Inputs[0].DType, n.Inputs[0].Dims)
	return n.alone()
}

func broadcastShape(n *Node, t DType) error {
	dims := n.Inputs[0].Dims
	for _, in := range n.Inputs[1:] {
		var ok bool
		if dims, ok = Broadcast(dims, in.Dims); !ok {
			return misfit(n)
		}
	}
	return n.returns(t, dims)
}

func dropoutShape(_ *Facts, n *Node) error {
	n.set(0, n.Inputs[0].DType, n.Inputs[0].Dims)
	n.set(1, Bool, n.Inputs[0].Dims)
	return nil
}

// sourceShapes are the inferences of operations whose results are shapes or constants.
var sourceShapes = map[string]inference{
	"Shape":            func(_ *Facts, n *Node) error { return n.returns(Int64, []int{len(shapeOf(n))}) },
	"Size":             func(_ *Facts, n *Node) error { return n.returns(Int64, nil) },
	"Constant":         constantShape,
	"ConstantOfShape":  constantOfShape,
	"Range":            rangeShape,
	"RandomNormalLike": likeShape,
	"EyeLike":          likeShape,
	"OneHot": func(f *Facts, n *Node) error {
		depth, ok := f.LiteralOf(n.Inputs[1].Name)
		if !ok {
			return unknown("the depth")
		}
		in := n.Inputs[0].Dims
		ax := Axis(n.Integer("axis", -1), len(in)+1)
		dims := append(append([]int(nil), in[:ax]...), depth.Integers()[0])
		return n.returns(n.Inputs[2].DType, append(dims, in[ax:]...))
	},
}

func likeShape(_ *Facts, n *Node) error {
	return n.returns(DType(n.Integer("dtype", int(n.Inputs[0].DType))), n.Inputs[0].Dims)
}

// shapeOf returns the dimensions that a Shape returns.
func shapeOf(n *Node) []int {
	dims := n.Inputs[0].Dims
	start, end := n.Integer("start", 0), n.Integer("end", len(dims))
	c := makeCut(0, start, end, 1, len(dims))
	return dims[c.Start : c.Start+c.Count]
}

// constantOf returns the tensor of a Constant.
func constantOf(n *Node) (Literal, bool) {
	for name, a := range n.Attrs {
		switch v := a.(type) {
		case *onnxpb.TensorProto:
			return DecodeTensor(v)
		case int:
			return Literal{dtype: Int64, Elements: numbers([]int{v})}, name == "value_int"
		case []int:
			return Literal{dtype: Int64, dims: []int{len(v)}, Elements: numbers(v)}, name == "value_ints"
		case float32:
			return Literal{dtype: Float, Elements: []float64{float64(v)}}, name == "value_float"
		case []float32:
			return Literal{dtype: Float, dims: []int{len(v)}, Elements: numbers(v)}, name == "value_floats"
		}
	}
	return Literal{}, false
}

func constantShape(_ *Facts, n *Node) error {
	if t, ok := n.Attrs["value"].(*onnxpb.TensorProto); ok {
		return n.returns(DType(t.DataType), Ints(t.Dims))
	}
	l, ok := constantOf(n)
	if !ok {
		return unknown("a constant of another kind")
	}
	return n.returns(l.dtype, l.dims)
}

func constantOfShape(f *Facts, n *Node) error {
	dims, ok := f.IntegersOf(n.Inputs[0])
	if !ok {
		return unknown("the shape")
	}
	t := Float
	if v, ok := n.Attrs["value"].(*onnxpb.TensorProto); ok {
		t = DType(v.DataType)
	}
	return n.returns(t, dims)
}

func rangeShape(f *Facts, n *Node) error {
	in, ok := f.literalsOf(n)
	if !ok {
		return unknown("the range")
	}
	count, ok := rangeCount(in)
	if !ok {
		return unknown("the range")
	}
	return n.returns(n.Inputs[0].DType, []int{count})
}
