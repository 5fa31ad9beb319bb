package prior

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
)

// SetCard sets entries of the model card of the file at path and writes the result to target, which may be the same
// file. It streams the weights, so memory does not grow with the file. Errors are ErrCard for a card that contradicts
// the graph, ErrGraph for a graph that is not a score model, and onnx.ErrModel for a file that is not a model; they
// leave target unchanged.
func SetCard(path, target string, entries map[string]string) error {
	in, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read prior: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("read prior: %w", err)
	}
	m, err := outline(in)
	if err != nil {
		return fmt.Errorf("prior %s: %w: not an ONNX file, or cut short (%d bytes)", path, onnx.ErrModel, info.Size())
	}
	metadata := map[string]string{}
	for _, e := range m.MetadataProps {
		metadata[e.Key] = e.Value
	}
	maps.Copy(metadata, entries)
	if err := checkCard(path, m, metadata); err != nil {
		return fmt.Errorf("prior %w", err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read prior: %w", err)
	}
	if err := rewrite(in, target, metadata, info.Mode().Perm()); err != nil {
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
	model, err := onnx.ReadModel(data)
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
	p := &Prior{Card: card, File: path, model: model}
	if err := p.bind(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// channels returns the channels of the first image among the ports, or 0 if none has a fixed number.
func channels(ports []onnx.Port) int {
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

// maxFieldBytes is the largest field that is read into memory.
const maxFieldBytes int64 = 16 << 20

// outline reads a model's interface, operator sets and metadata and skips its nodes and weights. The result has one
// placeholder node, which makes it a valid model.
func outline(r io.Reader) (*onnxpb.ModelProto, error) {
	header, graph := []byte{}, []byte{}
	weights := map[string]bool{}
	nodes := 0
	err := fields(bufio.NewReaderSize(r, 1<<16), -1, func(f field) error {
		switch f.number {
		case modelOpset, modelMetadata:
			return f.appendTo(&header)
		case modelGraph:
			return fields(f.body, f.size, func(f field) error {
				switch f.number {
				case graphInput, graphOutput:
					return f.appendTo(&graph)
				case graphNode:
					nodes++
				case graphInitializer:
					return fields(f.body, f.size, func(f field) error {
						var name []byte
						if f.number != tensorName {
							return f.skip()
						}
						err := f.read(&name)
						weights[string(name)] = true
						return err
					})
				}
				return f.skip()
			})
		}
		return f.skip()
	})
	m, g := &onnxpb.ModelProto{}, &onnxpb.GraphProto{}
	if err := errors.Join(err, proto.Unmarshal(header, m), proto.Unmarshal(graph, g)); err != nil {
		return nil, err
	}
	m.Graph = g
	if nodes == 0 {
		return nil, errors.New("no graph")
	}
	m.Graph.Input = slices.DeleteFunc(m.Graph.Input, func(v *onnxpb.ValueInfoProto) bool { return weights[v.Name] })
	m.Graph.Node = []*onnxpb.NodeProto{{OpType: "Identity"}}
	return m, nil
}

// field is one field of a protobuf message in a stream.
type field struct {
	number protowire.Number
	kind   protowire.Type
	tag    []byte
	size   int64 // bytes of the body; 0 for a varint, whose value is part of tag
	body   *bufio.Reader
}

// fields calls use for each field of a message of size bytes, or until the end of the stream if size is −1. use must
// read or skip the whole body.
func fields(r *bufio.Reader, size int64, use func(f field) error) error {
	for at := int64(0); size < 0 || at < size; {
		tag, n, err := varint(r)
		if errors.Is(err, io.EOF) && size < 0 && n == 0 {
			return nil
		}
		if err != nil {
			return io.ErrUnexpectedEOF
		}
		at += int64(n)
		number, kind := protowire.DecodeTag(tag)
		f := field{number: number, kind: kind, body: r, tag: protowire.AppendVarint(nil, tag)}
		switch kind {
		case protowire.BytesType:
			length, n, err := varint(r)
			if err != nil || length > 1<<40 {
				return io.ErrUnexpectedEOF
			}
			f.size = int64(length)
			f.tag = protowire.AppendVarint(f.tag, length)
			at += int64(n) + f.size
		case protowire.Fixed32Type:
			f.size, at = 4, at+4
		case protowire.Fixed64Type:
			f.size, at = 8, at+8
		case protowire.VarintType:
			value, n, err := varint(r)
			if err != nil {
				return io.ErrUnexpectedEOF
			}
			f.size, at = 0, at+int64(n)
			f.tag = protowire.AppendVarint(f.tag, value)
		default:
			return fmt.Errorf("field %d has the unsupported wire type %d", number, kind)
		}
		if number < 1 {
			return fmt.Errorf("invalid field number %d", number)
		}
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

// varint reads a varint and returns its value and length in bytes.
func varint(r *bufio.Reader) (value uint64, n int, err error) {
	var raw [binary.MaxVarintLen64]byte
	for n < len(raw) {
		if raw[n], err = r.ReadByte(); err != nil {
			return 0, n, err
		}
		if n++; raw[n-1] < 0x80 {
			value, _ = protowire.ConsumeVarint(raw[:n])
			return value, n, nil
		}
	}
	return 0, n, io.ErrUnexpectedEOF
}

// read appends the body to a buffer.
func (f field) read(to *[]byte) error {
	if f.size > maxFieldBytes {
		return fmt.Errorf("field %d has %d bytes, at most %d are supported", f.number, f.size, maxFieldBytes)
	}
	at := len(*to)
	*to = append(*to, make([]byte, f.size)...)
	_, err := io.ReadFull(f.body, (*to)[at:])
	return err
}

// appendTo appends tag and body to a buffer.
func (f field) appendTo(to *[]byte) error {
	*to = append(*to, f.tag...)
	return f.read(to)
}

func (f field) skip() error { return f.copy(io.Discard) }

func (f field) copy(to io.Writer) error {
	_, err := io.CopyN(to, f.body, f.size)
	return err
}

// rewrite copies the model to target with new metadata. It writes a temporary file and renames it, so that target is
// never half-written.
func rewrite(in io.Reader, target string, metadata map[string]string, mode os.FileMode) (err error) {
	out, err := os.CreateTemp(filepath.Dir(target), ".ddiff-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close(), os.Remove(out.Name()))
		}
	}()
	w := bufio.NewWriterSize(out, 1<<16)
	err = fields(bufio.NewReaderSize(in, 1<<16), -1, func(f field) error {
		if f.number == modelMetadata {
			return f.skip()
		}
		if _, err := w.Write(f.tag); err != nil {
			return err
		}
		return f.copy(w)
	})
	if err != nil {
		return err
	}
	tail := &onnxpb.ModelProto{}
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		tail.MetadataProps = append(tail.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: metadata[k]})
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(tail)
	if err != nil {
		return err
	}
	if _, err := w.Write(raw); err != nil {
		return err
	}
	if err := errors.Join(w.Flush(), out.Chmod(mode), out.Sync()); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), target)
}
