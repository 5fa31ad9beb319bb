package modelfile

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// ErrModel: the bytes are not a usable model. The message states the cause.
var ErrModel = failure.New(failure.Prior, "unusable ONNX model")

// Model is a parsed model file.
type Model struct {
	proto *onnxpb.ModelProto

	halfOnce sync.Once // streams compile beside each other
	half     *Model    // the result of Half

}

// ReadModel parses a model file. All errors wrap ErrModel.
func ReadModel(data []byte) (*Model, error) { return ReadModelBeside(data, "") }

// ReadModelBeside is ReadModel for the bytes of ReadMapped, with the folder of the file, in which the data files stay and do not change. Without a
// folder it is ReadModel, which refuses data files.
func ReadModelBeside(data []byte, dir string) (*Model, error) {
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("parse: %w: not an ONNX file, or cut short (%d bytes)", ErrModel, len(data))
	}
	if p.Graph == nil || len(p.Graph.Node) == 0 {
		return nil, fmt.Errorf("parse: %w: it has no graph", ErrModel)
	}
	weights := p.Graph.Initializer
	if dir != "" {
		var err error
		if p.Graph.Initializer, err = locate(p, dir); err != nil {
			return nil, err
		}
	}
	if err := oneFile(p); err != nil {
		return nil, err
	}
	p.Graph.Initializer = weights
	if err := checkNodes(p.Graph); err != nil {
		return nil, err
	}
	addBiases(p.Graph)
	return &Model{proto: p}, nil
}

// Proto returns the model in its file form. The caller does not change it.
func (m *Model) Proto() *onnxpb.ModelProto { return m.proto }

// Opset returns the version of the default operator set, 0 if the file has none.
func (m *Model) Opset() int {
	for _, o := range m.proto.OpsetImport {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			return int(o.Version)
		}
	}
	return 0
}

// Metadata returns the file's metadata.
func (m *Model) Metadata() map[string]string {
	out := make(map[string]string, len(m.proto.MetadataProps))
	for _, e := range m.proto.MetadataProps {
		out[e.Key] = e.Value
	}
	return out
}

// Inputs lists the inputs that a caller supplies: those without an initialiser.
func (m *Model) Inputs() []Port {
	given := map[string]bool{}
	for _, t := range m.proto.Graph.Initializer {
		given[t.Name] = true
	}
	var out []Port
	for _, v := range m.proto.Graph.Input {
		if !given[v.Name] {
			out = append(out, port(v))
		}
	}
	return out
}

// Outputs lists the outputs.
func (m *Model) Outputs() []Port {
	var out []Port
	for _, v := range m.proto.Graph.Output {
		out = append(out, port(v))
	}
	return out
}

// Parameters returns the number of elements in the initialisers.
func (m *Model) Parameters() int {
	n := 0
	for _, t := range m.proto.Graph.Initializer {
		k := 1
		for _, d := range t.Dims {
			k *= int(d)
		}
		n += k
	}
	return n
}

// Width returns the number of channels per pixel of an image into which the network first maps an image of some channels. A
// first convolution at a lower resolution has several pixels in its input channels, or strides over them. It is at least channels.
func (m *Model) Width(channels int) int {
	dims := map[string][]int64{}
	for _, t := range m.proto.Graph.Initializer {
		dims[t.Name] = t.Dims
	}
	casts := map[string]string{}
	for _, n := range m.proto.Graph.Node {
		if n.OpType == "Cast" && len(n.Input) == 1 && len(n.Output) == 1 {
			casts[n.Output[0]] = n.Input[0]
		}
		if n.OpType != "Conv" || len(n.Input) < 2 {
			continue
		}
		d := dims[n.Input[1]]
		if d == nil {
			d = dims[casts[n.Input[1]]]
		}
		const narrow = 16 // a filter of the image
		if len(d) == 4 && d[0] >= narrow && d[1] > 0 {
			width := int(d[0]) / max(1, int(d[1])/channels)
			for _, a := range n.Attribute {
				if a.Name == "strides" {
					for _, stride := range a.Ints {
						width /= max(1, int(stride))
					}
				}
			}
			return max(channels, width)
		}
	}
	return channels
}

func port(v *onnxpb.ValueInfoProto) Port {
	t := v.GetType().GetTensorType()
	p := Port{Name: v.Name, DType: infer.DType(t.GetElemType())}
	for _, d := range t.GetShape().GetDim() {
		n := -1
		if x, ok := d.Value.(*onnxpb.TensorShapeProto_Dimension_DimValue); ok {
			n = int(x.DimValue)
		}
		p.Dims, p.DimNames = append(p.Dims, n), append(p.DimNames, d.GetDimParam())
	}
	return p
}
