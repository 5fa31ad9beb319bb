package onnx

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx/onnxpb"
)

// ErrExternal: a model's data file is missing, cut short, too large or was altered.
var ErrExternal = errors.New("external data")

// digestKey begins the metadata entries that hold the digests of data files.
const digestKey = "ddiff.external."

// maxModel is what one protobuf message can hold.
const maxModel = 2<<30 - 1

// ReadFile gives the bytes of a model file with its external data moved into it: they are a
// model that stands alone. Data lies in files beside the model, which are held against the
// digests in its metadata ("ddiff.external." and the data file's name). ErrExternal and
// ErrModel wrap refusals. The file is one that its reader chose; what comes from elsewhere
// goes to ReadModel, which reads no other files.
func ReadFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil || m.Graph == nil || len(m.Graph.Node) == 0 {
		return nil, fmt.Errorf("read %s: %w: not an ONNX file, or cut short (%d bytes)", path, ErrModel, len(data))
	}
	changed, err := inline(path, m)
	if err != nil || !changed {
		return data, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// inline moves external data into the model, and tells whether there was any.
func inline(path string, m *onnxpb.ModelProto) (bool, error) {
	digests := map[string]string{}
	for _, e := range m.MetadataProps {
		if name, ok := strings.CutPrefix(e.Key, digestKey); ok {
			digests[name] = e.Value
		}
	}
	files, total := map[string][]byte{}, 0
	for _, t := range m.Graph.Initializer {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		location, offset, length, err := place(t)
		if err != nil {
			return false, fmt.Errorf("read %s: tensor %s: %w: %w", path, t.Name, ErrExternal, err)
		}
		data, ok := files[location]
		if !ok {
			if data, err = dataFile(filepath.Join(filepath.Dir(path), location), digests[location]); err != nil {
				return false, fmt.Errorf("read %s: %w", path, err)
			}
			files[location] = data
		}
		if length < 0 {
			length = len(data) - offset
		}
		if offset < 0 || length < 0 || offset > len(data)-length {
			return false, fmt.Errorf("read %s: %w %s is cut short: tensor %s ends at byte %d of %d", path, ErrExternal, location, t.Name, offset+length, len(data))
		}
		if total += length; total > maxModel {
			return false, fmt.Errorf("read %s: %w of more than 2 GiB cannot be taken into one graph; export it with --fp16", path, ErrExternal)
		}
		t.RawData = data[offset : offset+length]
		t.ExternalData, t.DataLocation = nil, onnxpb.TensorProto_DEFAULT
	}
	return len(files) > 0, nil
}

// place reads where a tensor's data lies; the length is −1 where it is not said.
func place(t *onnxpb.TensorProto) (location string, offset, length int, err error) {
	length = -1
	for _, e := range t.ExternalData {
		switch e.Key {
		case "location":
			location = e.Value
		case "offset":
			offset, err = strconv.Atoi(e.Value)
		case "length":
			length, err = strconv.Atoi(e.Value)
		}
		if err != nil {
			return "", 0, 0, fmt.Errorf("%s is %q", e.Key, e.Value)
		}
	}
	if !filepath.IsLocal(location) || filepath.Base(location) != location {
		return "", 0, 0, fmt.Errorf("the location %q is not a file beside the model", location)
	}
	return location, offset, length, nil
}

// dataFile reads a data file and holds it against its digest; without one it is taken as it is.
func dataFile(path, want string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("%w: there is no %s; put it beside the model", ErrExternal, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExternal, err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); want != "" && got != want {
		return nil, fmt.Errorf("%w: %s was altered: its SHA-256 is %.12s..., the model says %.12s...; fetch it again", ErrExternal, path, got, want)
	}
	return data, nil
}
