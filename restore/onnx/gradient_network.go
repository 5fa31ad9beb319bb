package onnx

import (
	"ddiff/internal/restore/onnx/infer"
)

// networkRules are the rules of the layers of networks.
var networkRules = map[string]rule{
	"Conv":          single(convRule),
	"ConvTranspose": single(convTransposeRule),
	"Resize":        single(resizeRule),

	"AveragePool":       single(averagePoolRule),
	"GlobalAveragePool": single(globalAveragePoolRule),
	"MaxPool":           single(maxPoolRule),

	"BatchNormalization":    single(batchNormRule),
	"GroupNormalization":    single(groupNormRule),
	"InstanceNormalization": single(instanceNormRule),
	"LayerNormalization":    single(layerNormRule),

	"LogSoftmax": single(logSoftmaxRule),
	"Softmax":    single(softmaxRule),
}

// single makes a rule that refuses gradients of other outputs than the first, such as the statistics of a normalisation.
func single(r func(g *Graph, n *infer.Node, k int, dy Value) (Value, error)) rule {
	return func(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
		for i, d := range dy {
			if (d.Name == "") == (i == 0) {
				return Value{}, n.Refuse("the gradient of output %d", i)
			}
		}
		return r(g, n, k, dy[0])
	}
}
