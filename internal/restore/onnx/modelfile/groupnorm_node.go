package modelfile

import (
	"fmt"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
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
	if spatial < f.least || spatial > 2 || groups < 1 || len(gamma) == 0 || len(gamma) != len(beta) || len(gamma)%groups != 0 {
		return
	}
	g := affine{
		f: f, prefix: fmt.Sprintf("groupnorm_%d_", f.count), groups: groups, spatial: spatial, gamma: gamma, beta: beta,
	}
	f.dropped[norm] = true
	f.replace(g, norm.Input[0], norm, norm)
}

// noRank: the number of dimensions of a value is unknown.
const noRank = -1

// rank returns the number of dimensions of a value, or noRank if it does not follow from the graph.
func (f *fuser) rank(value string) int {
	v, err := f.shapes.TypeOf(value)
	if err != nil {
		return noRank
	}
	return v.Rank()
}

// assumedSide replaces free dimensions where only the number of dimensions matters. The strides of networks divide it.
const assumedSide = 1024

// assumedFacts are those of the model for one image of a side that suits all networks.
func (m *Model) assumedFacts() *infer.Facts {
	inputs := map[string]infer.Value{}
	for _, p := range m.Inputs() {
		for i, d := range p.Dims {
			switch {
			case d < 0 && i == 0:
				p.Dims[i] = 1
			case d < 0:
				p.Dims[i] = assumedSide
			}
		}
		inputs[p.Name] = infer.Value{DType: p.DType, Dims: p.Dims}
	}
	return m.facts(inputs)
}
