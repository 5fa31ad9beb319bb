package prior

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ddiff/internal/regular"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
)

// SetCard sets entries of the model card of the file at path and writes the result to target, which may be the same
// file. It maps the file instead of reading it, so memory does not grow with the weights. Errors are ErrCard for a card
// that contradicts the graph, ErrGraph for a graph that is not a score model, and modelfile.ErrModel for a file that is not a
// model; they leave target unchanged.
func SetCard(path, target string, entries map[string]string) (err error) {
	data, mode, err := mapFile(path)
	if err != nil {
		return fmt.Errorf("read prior: %w", err)
	}
	defer func() {
		if data != nil {
			err = errors.Join(err, syscall.Munmap(data))
		}
	}()
	m, err := outline(data)
	if err != nil {
		return fmt.Errorf("prior %s: %w: not an ONNX file, or cut short (%d bytes)", path, modelfile.ErrModel, len(data))
	}
	metadata := map[string]string{}
	for _, e := range m.MetadataProps {
		metadata[e.Key] = e.Value
	}
	maps.Copy(metadata, entries)
	if err := checkCard(path, m, metadata); err != nil {
		return fmt.Errorf("prior %w", err)
	}
	if err := rewrite(data, target, metadata, mode); err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	return nil
}

// mapFile maps a file into memory and returns its permissions; data is nil for an empty file. The system reads pages on
// demand and may drop them at any time.
func mapFile(path string) (data []byte, mode os.FileMode, err error) {
	file, size, err := regular.Open(path, modelfile.MaxFileBytes)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || size == 0 {
		return nil, 0, err
	}
	data, err = syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	return data, info.Mode().Perm(), err
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

// Field numbers of the ONNX format that outline reads.
const (
	modelGraph, modelOpset, modelMetadata                = 7, 8, 14
	graphNode, graphInitializer, graphInput, graphOutput = 1, 5, 11, 12
	tensorName                                           = 8
)

// outline reads a model's interface, operator sets and metadata and skips its nodes and weights. The result has one
// placeholder node, which makes it a valid model.
func outline(data []byte) (*onnxpb.ModelProto, error) {
	var header, graph []byte
	weights := map[string]bool{}
	nodes := 0
	err := fields(data, func(f field) error {
		switch f.number {
		case modelOpset, modelMetadata:
			header = append(header, f.raw...)
		case modelGraph:
			return fields(f.body, func(f field) error {
				switch f.number {
				case graphInput, graphOutput:
					graph = append(graph, f.raw...)
				case graphNode:
					nodes++
				case graphInitializer:
					return fields(f.body, func(f field) error {
						if f.number == tensorName {
							weights[string(f.body)] = true
						}
						return nil
					})
				}
				return nil
			})
		}
		return nil
	})
	m, g := &onnxpb.ModelProto{}, &onnxpb.GraphProto{}
	if err := errors.Join(err, proto.Unmarshal(header, m), proto.Unmarshal(graph, g)); err != nil {
		return nil, err
	}
	if nodes == 0 {
		return nil, errors.New("no graph")
	}
	m.Graph = g
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return weights[v.Name] })
	g.Node = []*onnxpb.NodeProto{{OpType: "Identity"}}
	return m, nil
}

// field is one field of an encoded protobuf message.
type field struct {
	number protowire.Number
	raw    []byte // with the tag
	body   []byte // of a string or message, without tag and length; else nil
}

// fields calls use for each field of a message.
func fields(message []byte, use func(f field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		f := field{number: number, raw: message[:n]}
		if kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(f.raw)
			f.body, _ = protowire.ConsumeBytes(f.raw[tag:])
		}
		if err := use(f); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// rewrite copies the model to target with new metadata. It writes a temporary file and renames it, so that target is
// never half-written.
func rewrite(data []byte, target string, metadata map[string]string, mode os.FileMode) (err error) {
	tail := &onnxpb.ModelProto{}
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		tail.MetadataProps = append(tail.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: metadata[k]})
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(tail)
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(target), ".ddiff-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close(), os.Remove(out.Name()))
		}
	}()
	err = fields(data, func(f field) error {
		if f.number == modelMetadata {
			return nil
		}
		_, err := out.Write(f.raw)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := out.Write(raw); err != nil {
		return err
	}
	if err := errors.Join(out.Chmod(mode), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), target)
}
