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
	cfg   Config
	graph *onnxpb.GraphProto
	// weights are the tensors of the state dictionary. They share their data with the graph.
	weights []weight
}

// New draws the weights and builds the graph. ErrConfig: the configuration is invalid.
func New(cfg Config) (*Network, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := &builder{cfg: cfg, graph: &onnxpb.GraphProto{Name: "random"}, known: map[string]bool{}}
	b.build()
	return &Network{cfg: cfg, graph: b.graph, weights: b.weights}, nil
}

// ONNX encodes the network as the file of a prior, with its model card.
func (n *Network) ONNX() ([]byte, error) {
	c := n.cfg
	m := &onnxpb.ModelProto{
		IrVersion: 8, ProducerName: "ddiff", Graph: n.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: onnx.DefaultOpset}},
	}
	for _, e := range [][2]string{
		{"card", "1"}, {"name", fmt.Sprintf("random-%d", c.Base)}, {"prediction", "epsilon"},
		{"schedule", "linear:1e-4:0.02:1000"}, {"timestep", "int64 index 0..999"}, {"range", "-1..1"},
		{"channels", strconv.Itoa(c.Channels)}, {"multiple_of", strconv.Itoa(c.multipleOf())},
		{"learned_variance", "true"}, {"license", "Apache-2.0"}, {"training", "none: random weights for measurements"},
	} {
		m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{Key: "ddiff." + e[0], Value: e[1]})
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("marshal random network: %w", err)
	}
	return data, nil
}

// build builds the graph from x [N, C, S, S] and t [N] to y [N, 2·C, S, S].
func (b *builder) build() {
	c := b.cfg
	x := feature{name: b.input("x", onnx.Float, c.Channels, c.Size, c.Size), channels: c.Channels, side: c.Size}
	emb := b.embed(b.input("t", onnx.Int64))

	h := b.conv("input_blocks.0.0", x, c.Base, 3, 1)
	skips := []feature{h}
	for level, m := range c.Multipliers {
		for range c.Blocks {
			name := fmt.Sprintf("input_blocks.%d", len(skips))
			h = b.block(name+".0", h, emb, c.Base*m, same)
			if slices.Contains(c.Attention, h.side) {
				h = b.attention(name+".1", h)
			}
			skips = append(skips, h)
		}
		if level < len(c.Multipliers)-1 {
			h = b.block(fmt.Sprintf("input_blocks.%d.0", len(skips)), h, emb, h.channels, down)
			skips = append(skips, h)
		}
	}
	h = b.block("middle_block.0", h, emb, h.channels, same)
	h = b.attention("middle_block.1", h)
	h = b.block("middle_block.2", h, emb, h.channels, same)

	outputs := 0
	for level := len(c.Multipliers) - 1; level >= 0; level-- {
		for i := range c.Blocks + 1 {
			name, part := fmt.Sprintf("output_blocks.%d", outputs), 1
			h = b.block(name+".0", b.concat(h, skips[len(skips)-1]), emb, c.Base*c.Multipliers[level], same)
			skips = skips[:len(skips)-1]
			if slices.Contains(c.Attention, h.side) {
				h = b.attention(name+".1", h)
				part++
			}
			if level > 0 && i == c.Blocks {
				h = b.block(fmt.Sprintf("%s.%d", name, part), h, emb, h.channels, up)
			}
			outputs++
		}
	}
	h = b.conv("out.2", b.silu(b.norm("out.0", h)), 2*c.Channels, 3, 1)
	b.node("Identity", "y", h.name)
	b.graph.Output = append(b.graph.Output, port("y", onnx.Float, 2*c.Channels, c.Size, c.Size))
}
