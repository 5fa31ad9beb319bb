package prior

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ddiff/internal/regular"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
)

// SetCard sets entries of the model card of the file at path and writes the result to target, which may be the same
// file. It copies all else as it is; external data stays in its files. Errors are ErrCard for a card that contradicts the
// graph, ErrGraph for a graph that is not a score model, and modelfile.ErrModel for a file that is not a model; they leave
// target unchanged.
func SetCard(path, target string, entries map[string]string) error {
	data, err := regular.Read(path, modelfile.MaxFileBytes)
	if err != nil {
		return fmt.Errorf("read prior: %w", err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil || len(m.GetGraph().GetNode()) == 0 {
		return fmt.Errorf("prior %s: %w: not an ONNX file, or cut short (%d bytes)", path, modelfile.ErrModel, len(data))
	}
	metadata := map[string]string{}
	for _, e := range m.MetadataProps {
		metadata[e.Key] = e.Value
	}
	maps.Copy(metadata, entries)
	if err := checkCard(path, outline(m), metadata); err != nil {
		return fmt.Errorf("prior %w", err)
	}
	if err := rewrite(data, path, target, metadata); err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	return nil
}

// checkCard checks a card, which may be incomplete, against the graph.
func checkCard(path string, m *onnxpb.ModelProto, metadata map[string]string) error {
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	model, err := modelfile.ReadModel(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	assumed := maps.Clone(metadata)
	given := func(key string) bool { return strings.TrimSpace(assumed[keyPrefix+key]) != "" }
	for _, r := range required {
		if !given(r.key) {
			assumed[keyPrefix+r.key] = r.example
		}
	}
	in, out := channels(model.Inputs()), channels(model.Outputs())
	if in > 0 && strings.TrimSpace(metadata[keyPrefix+"channels"]) == "" {
		assumed[keyPrefix+"channels"] = strconv.Itoa(in)
	}
	if in > 0 && strings.TrimSpace(metadata[keyPrefix+"learned_variance"]) == "" {
		assumed[keyPrefix+"learned_variance"] = strconv.FormatBool(out == 2*in)
	}
	card, err := ParseCard(path, assumed)
	if err != nil {
		return err
	}
	p := &Prior{Description: Description{Card: card, File: path}, file: model}
	if err := p.bind(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// channels returns the channels of the first image among the ports, or 0 if none has a fixed number.
func channels(ports []modelfile.Port) int {
	for _, p := range ports {
		if len(p.Dims) == 4 && p.Dims[1] > 0 {
			return p.Dims[1]
		}
	}
	return 0
}

// outline returns the interface of a model without its nodes and weights, which may be in other files. One placeholder
// node makes it a valid model.
func outline(m *onnxpb.ModelProto) *onnxpb.ModelProto {
	weights := map[string]bool{}
	for _, t := range m.Graph.Initializer {
		weights[t.Name] = true
	}
	inputs := slices.DeleteFunc(slices.Clone(m.Graph.Input), func(v *onnxpb.ValueInfoProto) bool { return weights[v.Name] })
	return &onnxpb.ModelProto{OpsetImport: m.OpsetImport, Graph: &onnxpb.GraphProto{
		Input: inputs, Output: m.Graph.Output, Node: []*onnxpb.NodeProto{{OpType: "Identity"}},
	}}
}

// rewrite writes the model to target with new metadata, and with the permissions of path.
func rewrite(data []byte, path, target string, metadata map[string]string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	tail := &onnxpb.ModelProto{}
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		tail.MetadataProps = append(tail.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: metadata[k]})
	}
	const metadataField = 14
	out := make([]byte, 0, len(data)+proto.Size(tail))
	for len(data) > 0 {
		number, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if number != metadataField {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	// Encoded messages that follow each other are one message.
	if out, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(out, tail); err != nil {
		return err
	}
	return regular.Replace(target, out, info.Mode().Perm())
}
