package main_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/raster"
)

// badPriors are files of priors and operators that cannot be used.
func badPriors(t *testing.T) []badInput {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.onnx")
	writePrior(t, path, 3, card(3))
	whole := read(t, path)
	var all []badInput
	add := func(name string, data []byte) {
		files := map[string][]byte{"p.onnx": data, "a.png": grey(16)}
		all = append(all,
			badInput{name: "prior/inspect " + name, files: files, args: []string{"prior", "inspect", "p.onnx"}, code: 7, parts: []string{"ddiff: ", "p.onnx"}},
			refused("prior/run "+name, files, 7, []string{"ddiff: ", "p.onnx"}, "a.png", "--task", "hdr", "--prior", "p.onnx"),
			badInput{name: "operator/check " + name, files: files, args: []string{"operator", "check", "p.onnx"}, code: 7, parts: []string{"ddiff: ", "p.onnx"}},
			refused("operator/run "+name, files, 7, []string{"ddiff: ", "p.onnx"}, "a.png", "--operator", "p.onnx"))
	}
	for i := range 8 {
		n := (len(whole) - 3) * i / 8
		add(fmt.Sprintf("cut at %d of %d", n, len(whole)), whole[:n])
	}
	for _, text := range []string{"text", "\x08", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("\x00", 1000), "\x89PNG\r\n", "PK\x03\x04", "<html>", "version https://git-lfs.github.com/spec/v1\n"} {
		add(fmt.Sprintf("%.12q", text), []byte(text))
	}
	for key, values := range map[string][]string{
		"ddiff.card": {"0", "x", "99"}, "ddiff.prediction": {"noise", "x0\x1b[2J"}, "ddiff.schedule": {"linear", "linear:2:1:1000", "linear:1e-4:0.02:0", "linear:1e-4:0.02:1e9", "cosine:x"},
		"ddiff.range": {"x", "1..-1"}, "ddiff.channels": {"0", "x", "4", "-3"}, "ddiff.multiple_of": {"0", "x", "-8"}, "ddiff.learned_variance": {"maybe"},
	} {
		for _, value := range values {
			entries := card(3)
			entries[key] = value
			writePrior(t, path, 3, entries)
			files := map[string][]byte{"p.onnx": read(t, path), "a.png": grey(16)}
			all = append(all,
				badInput{name: fmt.Sprintf("card/inspect %s=%q", key, value), files: files, args: []string{"prior", "inspect", "p.onnx"}, code: 7, parts: []string{"ddiff: ", "p.onnx", strings.TrimPrefix(key, "ddiff.")}},
				refused(fmt.Sprintf("card/run %s=%q", key, value), files, 7, []string{"ddiff: ", "p.onnx", strings.TrimPrefix(key, "ddiff.")}, "a.png", "--task", "hdr", "--prior", "p.onnx"))
		}
	}
	return all
}

// badResults are restored images and results that were cut or edited.
func badResults(t *testing.T) []badInput {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), grey(64))
	out := tiny(t, "--images", filepath.Join(dir, "a.png"), "--task", "hdr", "--steps", "3")
	folder := folderOf(t, out, "hdr")
	sound := map[string][]byte{}
	for _, name := range files(t, folder) {
		sound[filepath.Join("item", name)] = read(t, filepath.Join(folder, name))
	}
	var all []badInput
	changed := func(name, file string, data []byte) {
		with := map[string][]byte{}
		for key, value := range sound {
			with[key] = value
		}
		with[file] = data
		all = append(all, badInput{name: "result/" + name, files: with, args: []string{"verify", "item"}, code: 3, parts: []string{"item"}, problems: true})
	}
	image, result := filepath.Join("item", "restored.png"), filepath.Join("item", "result.json")
	for i := range 12 {
		changed(fmt.Sprintf("restored.png cut %d", i), image, sound[image][:len(sound[image])*i/12])
		changed(fmt.Sprintf("result.json cut %d", i), result, sound[result][:len(sound[result])*i/12])
	}
	for _, text := range []string{"null", "7", "[]", "{}", "{\"schema\": 0}", "\x1b[2J", strings.Repeat("[", 20_000), "{\"item\": {\"id\": \"" + strings.Repeat("x", 900_000) + "\"}}", "\xff\xfe"} {
		changed(fmt.Sprintf("result.json %.20q", text), result, []byte(text))
		file, err := raster.SetPNGText(sound[image], "ddiff", strings.ToValidUTF8(text, "?"))
		must(t, err)
		changed(fmt.Sprintf("passport %.20q", text), image, file)
	}
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(sound[result], &fields))
	for name := range fields {
		edited := map[string]json.RawMessage{}
		for key, value := range fields {
			edited[key] = value
		}
		for _, value := range []string{`"\u001b[2J"`, `-7`, `[]`} {
			edited[name] = json.RawMessage(value)
			data, err := json.Marshal(edited)
			must(t, err)
			changed("result.json "+name+"="+value, result, data)
		}
	}
	for name, data := range sound {
		if strings.HasSuffix(name, ".npy") || strings.HasSuffix(name, "trace.json") {
			other := bytes.Clone(data)
			other[len(other)/2] ^= 1
			changed(filepath.Base(name)+" changed", name, other)
			changed(filepath.Base(name)+" empty", name, nil)
		}
	}
	for _, command := range []string{"verify", "replay", "report", "score", "export", "compare x"} {
		words := strings.Fields(command)
		all = append(all, badInput{name: "missing output/" + command, args: append(words, "nowhere"), code: 2, parts: []string{"ddiff: ", "no such ", "give "}})
	}
	for _, command := range []string{"report", "score", "export"} {
		for _, name := range []string{"x.png", "x.json"} {
			in := badInput{name: "file for an output/" + command + " " + name, files: map[string][]byte{name: []byte("x")}, args: []string{command, name}, code: 2}
			in.parts = []string{"ddiff: ", name, "is a file; give the directory"}
			all = append(all, in)
		}
	}
	return all
}

// badGraphs are priors whose files are sound and whose graphs ONNX Runtime cannot run, or must not.
func badGraphs(t *testing.T) []badInput {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.onnx")
	writePrior(t, path, 3, card(3))
	sound := read(t, path)
	integers := func(name string, values ...uint64) *onnxpb.TensorProto {
		tensor := &onnxpb.TensorProto{Name: name, Dims: []int64{int64(len(values))}, DataType: 7}
		for _, v := range values {
			tensor.RawData = binary.LittleEndian.AppendUint64(tensor.RawData, v)
		}
		return tensor
	}
	scalar := func(name string, value uint64) *onnxpb.TensorProto {
		tensor := integers(name, value)
		tensor.Dims = nil
		return tensor
	}
	node := func(op string, outputs []string, inputs ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: op, Input: inputs, Output: outputs}
	}
	with := func(n *onnxpb.NodeProto, a ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		n.Attribute = append(n.Attribute, a...)
		return n
	}
	whole := func(name string, i int64) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: name, I: i, Type: 2}
	}
	external, err := proto.Marshal(&onnxpb.TensorProto{
		Dims: []int64{1}, DataType: 1, DataLocation: onnxpb.TensorProto_EXTERNAL,
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: "location", Value: "a.png"}},
	})
	must(t, err)
	sparse := &onnxpb.AttributeProto{Name: "sparse_value", Type: 11}
	values := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), external)
	sparse.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 22, protowire.BytesType), values))
	mean := node("ReduceMean", []string{"m"}, "r")
	add := node("Add", []string{"eps"}, "x", "m")
	var all []badInput
	for name, c := range map[string]struct {
		nodes     []*onnxpb.NodeProto
		constants []*onnxpb.TensorProto
		part      string
	}{
		"range of 2^62":       {[]*onnxpb.NodeProto{node("Range", []string{"i"}, "0", "n", "1"), with(node("Cast", []string{"r"}, "i"), whole("to", 1)), mean, add}, []*onnxpb.TensorProto{scalar("0", 0), scalar("n", 1<<62), scalar("1", 1)}, "overflow"},
		"constant of 4 TiB":   {[]*onnxpb.NodeProto{node("ConstantOfShape", []string{"r"}, "n"), mean, add}, []*onnxpb.TensorProto{integers("n", 1<<20, 1<<20)}, "MiB of memory; export a smaller network"},
		"padding of 2^40":     {[]*onnxpb.NodeProto{node("Pad", []string{"r"}, "x", "n"), mean, add}, []*onnxpb.TensorProto{integers("n", 0, 0, 1<<40, 1<<40, 0, 0, 0, 0)}, "verflow"},
		"tiles of 2^120":      {[]*onnxpb.NodeProto{node("Tile", []string{"r"}, "x", "n"), mean, add}, []*onnxpb.TensorProto{integers("n", 1<<30, 1<<30, 1<<30, 1<<30)}, "p.onnx"},
		"split into 2^40":     {[]*onnxpb.NodeProto{with(node("Split", []string{"r"}, "x"), whole("num_outputs", 1<<40)), mean, add}, nil, "p.onnx"},
		"sparse data outside": {[]*onnxpb.NodeProto{with(node("Constant", []string{"m"}), sparse), add}, nil, "sparse"},
		"sum of nothing":      {[]*onnxpb.NodeProto{node("Sum", []string{"eps"}, "x", "")}, nil, "input 2 has no name"},
		"part without a name": {[]*onnxpb.NodeProto{with(node("Split", []string{"eps", ""}, "x"), whole("num_outputs", 2))}, nil, "output 2 has no name"},
		"attention, no bias":  {[]*onnxpb.NodeProto{{OpType: "Attention", Domain: "com.microsoft", Input: []string{"x", "x"}, Output: []string{"eps"}}}, nil, "it has no bias"},
	} {
		m := &onnxpb.ModelProto{}
		must(t, proto.Unmarshal(sound, m))
		m.Graph.Node, m.Graph.Initializer, m.OpsetImport = c.nodes, c.constants, []*onnxpb.OperatorSetIdProto{{Version: 18}}
		data, err := proto.Marshal(m)
		must(t, err)
		files := map[string][]byte{"p.onnx": data, "a.png": grey(16)}
		all = append(all,
			badInput{name: "graph/check " + name, files: files, args: []string{"prior", "check", "p.onnx", "--size", "16", "--threads", "1"}, code: 7, parts: []string{"ddiff: ", c.part}},
			refused("graph/run "+name, files, 7, []string{"ddiff: ", c.part}, "a.png", "--task", "hdr", "--prior", "p.onnx"))
	}
	return all
}
