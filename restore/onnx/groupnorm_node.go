package onnx

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

// fuseNode rewrites a normalisation that is one node, as PyTorch's newer exporter writes it from operator set 21 on: with scale and shift per
// channel. It does not rewrite one whose result's number of dimensions does not follow from the graph.
func (f *fuser) fuseNode(norm *onnxpb.NodeProto) {
	if f.model.Opset() < 21 || len(norm.Input) != 3 {
		return // before, scale and shift are those of the groups
	}
	attrs := typed(norm.Attribute)
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
	"Identity", "Cast", "Sigmoid", "Tanh", "Relu", "LeakyRelu", "Elu", "Gelu", "Mish", "HardSwish", "Swish", "Softplus", "Clip", "Dropout",
	"Concat", "Slice", "Pad", "Resize", "AveragePool", "MaxPool", "ConvTranspose", "DepthToSpace", "SpaceToDepth",
	"GroupNormalization", "InstanceNormalization", "BatchNormalization", "LayerNormalization",
}

// noRank: the number of dimensions of a value is unknown.
const noRank = -1

// length returns the number of elements of a shape, or noRank.
func (f *fuser) length(shape string) int {
	if t, ok := f.consts[shape]; ok && len(t.Dims) == 1 {
		return int(t.Dims[0])
	}
	n := f.producers[shape]
	switch {
	case n == nil:
	case n.OpType == "Concat":
		sum := 0
		for _, in := range n.Input {
			part := f.length(in)
			if part == noRank {
				return noRank
			}
			sum += part
		}
		return sum
	case n.OpType == "Shape":
		attrs := typed(n.Attribute)
		start, _ := attrs["start"].(int)
		end, ok := attrs["end"].(int)
		if !ok {
			end = f.rank(n.Input[0])
		}
		if start >= 0 && end > start {
			return end - start
		}
	default:
		return 1 // one side, computed by itself
	}
	return noRank
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

func (f *fuser) rankOf(value string) int {
	if t, ok := f.consts[value]; ok {
		return len(t.Dims)
	}
	n := f.producers[value]
	if n == nil || len(n.Input) == 0 || len(n.Output) == 0 || n.Output[0] != value || n.Domain != "" && n.Domain != "ai.onnx" {
		return noRank
	}
	switch op := n.OpType; {
	case op == "Conv" && len(n.Input) > 1:
		return max(f.rank(n.Input[0]), f.rank(n.Input[1])) // the weights have as many dimensions as the image
	case op == "Add" || op == "Sub" || op == "Mul" || op == "Div":
		// A value of unknown rank, such as one that is computed from the time, has no more dimensions than the image beside it.
		return max(f.rank(n.Input[0]), f.rank(n.Input[len(n.Input)-1]))
	case op == "Reshape" && len(n.Input) > 1:
		return f.length(n.Input[1])
	case op == "Transpose":
		if p, ok := typed(n.Attribute)["perm"].([]int); ok {
			return len(p)
		}
		return f.rank(n.Input[0])
	case slices.Contains(sameRank, op):
		return f.rank(n.Input[0])
	}
	return noRank
}
