package modelfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/regular"
	"ddiff/restore/onnx/onnxpb"
)

// ErrExternal: a model's data file is missing, cut short, too large or altered.
var ErrExternal = errors.New("external data")

// digestKey is the prefix of metadata entries with the digests of data files.
const digestKey = "ddiff.external."

// MaxFileBytes is the size limit of a model file and of its external data, the limit of a protobuf message.
const MaxFileBytes = 2<<30 - 1

// ReadFile returns the bytes of a model file with its external data embedded. Data files lie beside the model and must
// have the digests in its metadata ("ddiff.external." and the data file's name), if there are any. Errors wrap
// ErrExternal or ErrModel. Use it for files that the user chose; ReadModel, for all others, reads no other files.
func ReadFile(path string) ([]byte, error) {
	data, err := regular.Read(path, MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil || m.Graph == nil || len(m.Graph.Node) == 0 {
		return nil, fmt.Errorf("read %s: %w: not an ONNX file, or cut short (%d bytes)", path, ErrModel, len(data))
	}
	changed, err := embed(path, m)
	if err != nil || !changed {
		return data, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// embed moves external data into the model and reports whether there was any.
func embed(path string, m *onnxpb.ModelProto) (bool, error) {
	digests := map[string]string{}
	for _, e := range m.MetadataProps {
		if name, ok := strings.CutPrefix(e.Key, digestKey); ok {
			digests[name] = e.Value
		}
	}
	files, total := map[string][]byte{}, int64(0)
	for _, t := range m.Graph.Initializer {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		name, offset, length, err := location(t)
		if err != nil {
			return false, fmt.Errorf("read %s: tensor %s: %w: %w", path, t.Name, ErrExternal, err)
		}
		data, ok := files[name]
		if !ok {
			if data, err = readDataFile(filepath.Join(filepath.Dir(path), name), digests[name]); err != nil {
				return false, fmt.Errorf("read %s: %w", path, err)
			}
			files[name] = data
		}
		size := int64(len(data))
		if length < 0 {
			length = size - offset
		}
		if offset < 0 || length < 0 || offset > size-length {
			return false, fmt.Errorf("read %s: %w %s is cut short: tensor %s ends at byte %d of %d", path, ErrExternal, name, t.Name, offset+length, size)
		}
		if total += length; total > MaxFileBytes {
			return false, fmt.Errorf("read %s: %w exceeds 2 GiB, the limit of one graph; export the model with --float16", path, ErrExternal)
		}
		t.RawData = data[offset : offset+length : offset+length]
		t.ExternalData, t.DataLocation = nil, onnxpb.TensorProto_DEFAULT
	}
	return len(files) > 0, nil
}

// location parses the position of a tensor's data. A missing length is −1.
func location(t *onnxpb.TensorProto) (name string, offset, length int64, err error) {
	length = -1
	for _, e := range t.ExternalData {
		switch e.Key {
		case "location":
			name = e.Value
		case "offset":
			offset, err = strconv.ParseInt(e.Value, 10, 64)
		case "length":
			length, err = strconv.ParseInt(e.Value, 10, 64)
		}
		if err != nil {
			return "", 0, 0, fmt.Errorf("%s is %q", e.Key, e.Value)
		}
	}
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return "", 0, 0, fmt.Errorf("the location %q is not a file beside the model", name)
	}
	return name, offset, length, nil
}

// readDataFile reads a data file and checks its digest unless want is empty.
func readDataFile(path, want string) ([]byte, error) {
	data, err := regular.Read(path, MaxFileBytes)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("%w: %s does not exist; put it beside the model", ErrExternal, path)
	case errors.Is(err, regular.ErrTooLarge):
		return nil, fmt.Errorf("%w: %w, the limit of one graph; export the model with --float16", ErrExternal, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrExternal, err)
	case want == "":
		return data, nil
	}
	if got := regular.SHA256(data); got != want {
		return nil, fmt.Errorf("%w: %s was altered: its SHA-256 is %.12s..., the model has %.12s...; download it again", ErrExternal, path, got, want)
	}
	return data, nil
}
