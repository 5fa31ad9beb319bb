package modelfile

import (
	"fmt"
	"slices"
	"strings"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// fuseNode rewrites a normalisation that is one node, as PyTorch's newer exporter writes it from operator set 21 on: with scale and shift per
// channel. It does not rewrite one whose result's number of dimensions does not follow from the graph.
func (f *fuser) fuseNode(norm *onnxpb.NodeProto) {
	if f.model.Opset() < 21 || len(norm.Input) != 3 || len(norm.Output) != 1 {
		return // before, scale and shift are those of the groups
	}
	attrs := infer.DecodeAttributes(norm.Attribute)
	groups, _ := attrs["num_groups"].(int)
	gamma, beta, spatial := f.floats(norm.Input[1]), f.floats(norm.Input[2]), f.rank(norm.Input[0])-2
	if spatial < 1 || spatial > 2 || groups < 1 || len(gamma) == 0 || len(gamma) != len(beta) || len(gamma)%groups != 0 {
		return
	}
	g := affine{
		f: f, prefix: fmt.Sprintf("groupnorm_%d_", f.count), groups: groups, spatial: spatial, gamma: gamma, beta: beta,
	}
	f.dropped[norm] = true
	f.replace(g, norm.Input[0], norm, norm)
}

// sameRank are the operations whose results have as many dimensions as their first input.
var sameRank = []string{
	"Identity", "Cast", "Sigmoid", "Tanh", "Relu", "PRelu", "LeakyRelu", "Elu", "Gelu", "Mish", "HardSigmoid", "HardSwish", "Swish", "Softplus", "Softmax",
	"Clip", "Neg", "Abs", "Exp", "Sqrt", "Dropout", "Concat", "Slice", "Split", "Pad", "Resize", "AveragePool", "MaxPool", "GlobalAveragePool", "ConvTranspose", "DepthToSpace",
	"SpaceToDepth", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "LayerNormalization",
}

// sameLength are the operations on integers whose results have as many elements as their first input.
var sameLength = []string{"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Neg", "Abs", "Floor", "Ceil", "Round", "Sqrt"}

// noRank: the number of dimensions of a value is unknown.
const noRank = -1

// length returns the number of elements of a shape, or of a part of one: of a number or a list. It is noRank if it is unknown.
func (f *fuser) length(shape string) int {
	l, ok := f.lengths[shape]
	if !ok {
		f.lengths[shape] = noRank // in an invalid graph, a value may depend on itself
		l = f.lengthOf(shape)
		f.lengths[shape] = l
	}
	return l
}

func (f *fuser) lengthOf(shape string) int {
	if t, ok := f.consts[shape]; ok {
		switch len(t.Dims) {
		case 0:
			return 1
		case 1:
			return int(t.Dims[0])
		}
		return noRank
	}
	n := f.producers[shape]
	if n == nil || len(n.Output) == 0 || n.Output[0] != shape || n.Domain != "" && n.Domain != "ai.onnx" {
		return noRank
	}
	attrs := infer.DecodeAttributes(n.Attribute)
	switch op := n.OpType; {
	case op == "Constant":
		if list, ok := attrs["value_ints"].([]int); ok {
			return len(list)
		}
		if _, ok := attrs["value_int"]; ok {
			return 1
		}
	case len(n.Input) == 0:
	case op == "Concat":
		sum := 0
		for _, in := range n.Input {
			part := f.length(in)
			if part == noRank || sum > maxRank {
				return noRank
			}
			sum += part
		}
		return sum
	case op == "Shape":
		begin, _ := attrs["start"].(int)
		end, ok := attrs["end"].(int)
		return between(begin, end, ok, f.rank(n.Input[0]))
	case op == "Size":
		return 1
	case op == "Gather" && len(n.Input) == 2:
		return f.length(n.Input[1])
	case op == "Slice" && len(n.Input) >= 3:
		begin, end := f.integers(n.Input[1]), f.integers(n.Input[2])
		steps := []int{1}
		if len(n.Input) > 4 && n.Input[4] != "" {
			steps = f.integers(n.Input[4])
		}
		if len(begin) == 1 && len(end) == 1 && slices.Equal(steps, []int{1}) {
			return between(begin[0], end[0], true, f.length(n.Input[0]))
		}
	case slices.Contains(elementwise, op) && len(n.Input) == 2:
		a, b := f.length(n.Input[0]), f.length(n.Input[1])
		if a != noRank && b != noRank {
			return max(a, b)
		}
	case slices.Contains(sameLength, op):
		return f.length(n.Input[0])
	}
	return noRank
}

// elementwise are the operations on two values, one of which may repeat along dimensions of the other.
var elementwise = []string{"Add", "Sub", "Mul", "Div", "Min", "Max", "Mod", "Pow", "Sum", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}

// maxRank is far above the number of dimensions of any value.
const maxRank = 1 << 10

// between returns the number of elements from begin to end, or to the last without an end, of a list whose length may be unknown. Negative
// positions count from the list's end.
func between(begin, end int, ended bool, length int) int {
	switch {
	case length != noRank:
		if !ended {
			end = length
		}
		place := func(i int) int {
			if i < 0 {
				i += length
			}
			return min(max(i, 0), length)
		}
		return max(place(end)-place(begin), 0)
	case ended && begin >= 0 && end >= begin && end <= maxRank:
		return end - begin // the list is long enough in all graphs that need its end
	}
	return noRank
}

// integers returns the elements of a constant of integers, else nil.
func (f *fuser) integers(name string) []int {
	t, ok := f.consts[name]
	if !ok {
		return nil
	}
	l, _ := infer.DecodeTensor(t)
	return l.Integers
}

// rank returns the number of dimensions of a value as the graph states it, or noRank.
func (f *fuser) rank(value string) int {
	if r, ok := f.ranks[value]; ok {
		return r
	}
	f.ranks[value] = noRank // in an invalid graph, a value may depend on itself
	r := f.rankOf(value)
	f.ranks[value] = r
	return r
}

// broadcast returns the number of dimensions of a result of values of which each may repeat along dimensions of the others. A value of unknown rank that
// does not depend on the image, such as one that is computed from the time, has no more dimensions than the image beside it.
func (f *fuser) broadcast(values []string) int {
	most := noRank
	for _, v := range values {
		r := f.rank(v)
		if r == noRank && f.image[v] {
			return noRank
		}
		most = max(most, r)
	}
	return most
}

func (f *fuser) rankOf(value string) int {
	if t, ok := f.consts[value]; ok {
		return len(t.Dims)
	}
	n := f.producers[value]
	if n == nil || len(n.Input) == 0 || len(n.Output) == 0 || n.Output[0] != value && n.OpType != "Split" || n.Domain != "" && n.Domain != "ai.onnx" {
		return noRank
	}
	switch op := n.OpType; {
	case op == "Conv" && len(n.Input) > 1:
		return max(f.rank(n.Input[0]), f.rank(n.Input[1])) // the weights have as many dimensions as the image
	case op == "Where" || slices.Contains(elementwise, op):
		return f.broadcast(n.Input)
	case op == "Reshape" && len(n.Input) > 1:
		return f.length(n.Input[1])
	case op == "Unsqueeze" || op == "Squeeze":
		return f.squeezed(n)
	case strings.HasPrefix(op, "Reduce"):
		if keep, ok := infer.DecodeAttributes(n.Attribute)["keepdims"].(int); !ok || keep != 0 {
			return f.rank(n.Input[0])
		}
	case op == "Transpose":
		if p, ok := infer.DecodeAttributes(n.Attribute)["perm"].([]int); ok {
			return len(p)
		}
		return f.rank(n.Input[0])
	case slices.Contains(sameRank, op):
		return f.rank(n.Input[0])
	}
	return noRank
}

// squeezed returns the number of dimensions of the result of Squeeze or Unsqueeze.
func (f *fuser) squeezed(n *onnxpb.NodeProto) int {
	r := f.rank(n.Input[0])
	if r == noRank || len(n.Input) < 2 {
		return noRank
	}
	axes := f.length(n.Input[1])
	switch {
	case axes == noRank:
		return noRank
	case n.OpType == "Squeeze":
		return max(r-axes, noRank)
	}
	return r + axes
}
