package onnxtest

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/restore/onnx"
)

const (
	base         = 32 // channels at full resolution
	headChannels = 64 // of attention
	groups       = 32 // of a group normalisation
	channels     = 3  // of an image
)

// Network builds a score network with random weights in the architecture of guided-diffusion, for images of a side in pixels, a multiple of 4: residual blocks with scale
// and shift by the time, attention, learned variance. It has the operations of a published prior without its file, and its predictions are meaningless. It
// returns the file of the prior with its model card.
//
// Package noise draws the 1.4 million weights from their names, those of the published state dictionaries, so that all machines build equal networks. They are scaled to keep
// activations near 1.
func Network(side int) ([]byte, error) {
	b := &builder{Graph: onnx.NewGraph(onnx.DefaultOpset)}
	b.build(side)
	model, err := b.Marshal("random")
	if err != nil {
		return nil, err
	}
	card := &onnxpb.ModelProto{}
	for _, e := range [][2]string{
		{"card", "1"}, {"name", "random-32"}, {"prediction", "epsilon"}, {"schedule", "linear:1e-4:0.02:1000"},
		{"timestep", "int64 index 0..999"}, {"range", "-1..1"}, {"channels", "3"}, {"multiple_of", "4"}, {"learned_variance", "true"},
		{"license", "Apache-2.0"}, {"training", "none: random weights for measurements"},
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

// build builds the graph from x [N, 3, S, S] and t [N] to y [N, 6, S, S]. The maps with a quarter of the side have attention.
func (b *builder) build(side int) {
	multipliers := []int{1, 2, 2} // of base, one per level; each level halves the side
	x := b.Input("x", onnx.Float, -1, channels, side, side)
	emb := b.embed(b.Input("t", onnx.Int64, -1))

	h := b.conv("input_blocks.0.0", x, base, 3, 1)
	skips := []onnx.Value{h}
	for level, m := range multipliers {
		name := fmt.Sprintf("input_blocks.%d", len(skips))
		h = b.block(name+".0", h, emb, base*m, same)
		if h.Dims[2] == side/4 {
			h = b.attention(name+".1", h)
		}
		skips = append(skips, h)
		if level < len(multipliers)-1 {
			h = b.block(fmt.Sprintf("input_blocks.%d.0", len(skips)), h, emb, h.Dims[1], down)
			skips = append(skips, h)
		}
	}
	h = b.block("middle_block.0", h, emb, h.Dims[1], same)
	h = b.attention("middle_block.1", h)
	h = b.block("middle_block.2", h, emb, h.Dims[1], same)

	outputs := 0
	for level := len(multipliers) - 1; level >= 0; level-- {
		for i := range 2 {
			name, part := fmt.Sprintf("output_blocks.%d", outputs), 1
			h = b.block(name+".0", b.Concat(1, h, skips[len(skips)-1]), emb, base*multipliers[level], same)
			skips = skips[:len(skips)-1]
			if h.Dims[2] == side/4 {
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
