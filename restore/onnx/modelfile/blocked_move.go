package modelfile

import (
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// concat adds a concatenation of images along the channels.
func (b *blocker) concat(n *onnxpb.NodeProto) bool {
	y := b.dims(n.Output[0])
	if axis, _ := infer.DecodeAttributes(n.Attribute)["axis"].(int); y == nil || axis != 1 && axis != -3 {
		return false
	}
	for _, in := range n.Input {
		if !b.imageLike(in) {
			return false
		}
	}
	var names []string
	for _, in := range n.Input {
		names = append(names, b.imageOf(in).name)
	}
	b.nodes = append(b.nodes, copied(n, b.blockedName(n.Output[0]), names...))
	b.add(n.Output[0], y)
	return true
}

// resize adds a repetition of pixels. One of 2×2 is delayed: a convolution may follow.
func (b *blocker) resize(n *onnxpb.NodeProto) bool {
	v, y, attrs := b.imageOf(n.Input[0]), b.dims(n.Output[0]), infer.DecodeAttributes(n.Attribute)
	if v == nil || len(y) != 4 || y[1] != v.dims[1] || y[2]%v.dims[2] != 0 || y[3]%v.dims[3] != 0 || attrs["axes"] != nil ||
		attrs["mode"] != nil && attrs["mode"] != "nearest" || attrs["coordinate_transformation_mode"] != "asymmetric" || attrs["nearest_mode"] != "floor" {
		return false
	}
	high, wide := y[2]/v.dims[2], y[3]/v.dims[3]
	// Scales that are no integers may give the same size: floor then repeats pixels unevenly.
	if len(n.Input) > 2 && n.Input[2] != "" {
		l := b.literal(n.Input[2])
		if l == nil || !slices.Equal(l.Elements, []float64{1, 1, float64(high), float64(wide)}) {
			return false
		}
	}
	if high == 2 && wide == 2 {
		b.views[n.Output[0]] = &view{kind: viewUpsized, dims: y, of: n.Input[0]}
		return true
	}
	b.upsample(n.Output[0], n.Input[0], high, wide)
	return true
}

// upsample adds the repetition of an image's pixels.
func (b *blocker) upsample(name, of string, high, wide int) {
	v := b.views[of]
	b.emit(BlockedDomain, "Upsample", b.blockedName(name), []string{v.name}, map[string]any{"scales": []int{1, 1, high, wide}})
	b.add(name, []int{v.dims[0], v.dims[1], v.dims[2] * high, v.dims[3] * wide})
}

// pool adds a pooling.
func (b *blocker) pool(n *onnxpb.NodeProto) bool {
	v, y, attrs := b.imageOf(n.Input[0]), b.dims(n.Output[0]), infer.DecodeAttributes(n.Attribute)
	if v == nil || len(y) != 4 || attrs["ceil_mode"] != nil && attrs["ceil_mode"] != 0 || attrs["storage_order"] != nil && attrs["storage_order"] != 0 ||
		n.OpType == "AveragePool" && attrs["dilations"] != nil {
		return false
	}
	c := copied(n, b.blockedName(n.Output[0]), v.name)
	c.Domain = BlockedDomain
	b.nodes = append(b.nodes, c)
	b.add(n.Output[0], y)
	return true
}
