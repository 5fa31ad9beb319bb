package onnx

import (
	"fmt"

	"ddiff/restore/onnx/modelfile"
)

// Block makes later calls of InlineNetwork use the blocked layout with this number of channels per block, see Runtime.Block.
// 0, the default: none.
func (g *Graph) Block(channels int) { g.block = channels }

// InlineNetwork is Inline for a network that Gradient does not pass. With Block, images between the network's convolutions have the
// layout of ONNX Runtime's CPU kernels, NCHWc: [N, C/c, H, W, c] in memory, for c channels per block. ONNX Runtime itself chooses
// this layout for convolutions only, and converts images before and after each normalisation. Here group
// normalisations as FuseGroupNorm writes them stay in the layout: statistics by channel from a pooling and a convolution of the image with
// itself, and slope and offset as a convolution by channel. A convolution after an upsampling by 2 is one of the small image, with four
// phases and 4/9 of the products. Results differ by rounding.
//
// Dimensions of the inputs are those of the network for these inputs alone; nodes whose dimensions are unknown stay as they are.
func (g *Graph) InlineNetwork(m *modelfile.Model, inputs map[string]Value, outputs map[string][]int) (map[string]Value, error) {
	if g.block > 0 && !g.half {
		m = g.blocked(m, inputs)
	}
	return g.Inline(m, inputs, outputs)
}

// blocked returns the model in the blocked layout for the dimensions of its inputs. The graphs around g share it.
func (g *Graph) blocked(m *modelfile.Model, inputs map[string]Value) *modelfile.Model {
	key := blockedKey{model: m, channels: g.block}
	for _, name := range sortedKeys(inputs) {
		key.dims += fmt.Sprint(inputs[name].Dims)
	}
	if g.blockedModels[key] == nil {
		g.blockedModels[key] = m.Blocked(g.block, inputs)
	}
	return g.blockedModels[key]
}

// blockedKey identifies a model, the dimensions of its inputs, and the layout.
type blockedKey struct {
	model    *modelfile.Model
	dims     string
	channels int
}
