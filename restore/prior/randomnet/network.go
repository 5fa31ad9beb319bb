package randomnet

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
)

// Network is a built network.
type Network struct {
	cfg     Config
	graph   *onnx.Graph
	weights []weight
}

// New draws the weights and builds the graph.
func New(cfg Config) *Network {
	b := &builder{cfg: cfg, Graph: onnx.NewGraph(onnx.DefaultOpset)}
	b.build()
	return &Network{cfg: cfg, graph: b.Graph, weights: b.weights}
}

// ONNX encodes the network as the file of a prior, with its model card.
func (n *Network) ONNX() ([]byte, error) {
	c := n.cfg
	model, err := n.graph.Marshal("random")
	if err != nil {
		return nil, err
	}
	card := &onnxpb.ModelProto{}
	for _, e := range [][2]string{
		{"card", "1"}, {"name", fmt.Sprintf("random-%d", c.Base)}, {"prediction", "epsilon"},
		{"schedule", "linear:1e-4:0.02:1000"}, {"timestep", "int64 index 0..999"}, {"range", "-1..1"},
		{"channels", strconv.Itoa(channels)}, {"multiple_of", strconv.Itoa(1 << (len(c.Multipliers) - 1))},
		{"learned_variance", "true"}, {"license", "Apache-2.0"}, {"training", "none: random weights for measurements"},
	} {
		card.MetadataProps = append(card.MetadataProps, &onnxpb.StringStringEntryProto{Key: "ddiff." + e[0], Value: e[1]})
	}
	// Encoded messages that follow each other are one message.
	model, err = proto.MarshalOptions{Deterministic: true}.MarshalAppend(model, card)
	if err != nil {
		return nil, fmt.Errorf("marshal the card of a random network: %w", err)
	}
	return model, nil
}

// build builds the graph from x [N, 3, S, S] and t [N] to y [N, 6, S, S].
func (b *builder) build() {
	c := b.cfg
	x := b.Input("x", onnx.Float, -1, channels, c.Size, c.Size)
	emb := b.embed(b.Input("t", onnx.Int64, -1))

	h := b.conv("input_blocks.0.0", x, c.Base, 3, 1)
	skips := []onnx.Value{h}
	for level, m := range c.Multipliers {
		name := fmt.Sprintf("input_blocks.%d", len(skips))
		h = b.block(name+".0", h, emb, c.Base*m, same)
		if slices.Contains(c.Attention, h.Dims[2]) {
			h = b.attention(name+".1", h)
		}
		skips = append(skips, h)
		if level < len(c.Multipliers)-1 {
			h = b.block(fmt.Sprintf("input_blocks.%d.0", len(skips)), h, emb, h.Dims[1], down)
			skips = append(skips, h)
		}
	}
	h = b.block("middle_block.0", h, emb, h.Dims[1], same)
	h = b.attention("middle_block.1", h)
	h = b.block("middle_block.2", h, emb, h.Dims[1], same)

	outputs := 0
	for level := len(c.Multipliers) - 1; level >= 0; level-- {
		for i := range 2 {
			name, part := fmt.Sprintf("output_blocks.%d", outputs), 1
			h = b.block(name+".0", b.Concat(1, h, skips[len(skips)-1]), emb, c.Base*c.Multipliers[level], same)
			skips = skips[:len(skips)-1]
			if slices.Contains(c.Attention, h.Dims[2]) {
				h = b.attention(name+".1", h)
				part++
			}
			if level > 0 && i == 1 {
				h = b.block(fmt.Sprintf("%s.%d", name, part), h, emb, h.Dims[1], up)
			}
			outputs++
		}
	}
	h = b.conv("out.2", b.silu(b.norm("out.0", h)), 2*channels, 3, 1)
	b.Output("y", h)
}
