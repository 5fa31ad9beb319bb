package modelfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxpb"
)

// Open reads a model file that the user chose, of any size. Errors are those of ReadFile and ReadModel.
func Open(path string) (*Model, error) {
	dir := ""
	data, err := ReadFile(path)
	if errors.Is(err, regular.ErrTooLarge) {
		dir = filepath.Dir(path)
		data, err = ReadMapped(path)
	}
	if err != nil {
		return nil, err
	}
	m, err := ReadModelBeside(data, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// locate gives the tensors whose data stay in files of a folder their paths, from the root of the file system, where sessions look for them. It returns the other tensors.
// The digest of a file makes graphs of different files different, as the cache of compiled engines needs.
func locate(m *onnxpb.ModelProto, dir string) (others []*onnxpb.TensorProto, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("find the data files: %w: %w", ErrModel, err)
	}
	known := digests(m)
	for _, t := range m.Graph.Initializer {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			others = append(others, t)
			continue
		}
		name, offset, length, err := location(t)
		if err != nil {
			return nil, fmt.Errorf("read tensor %q: %w: %w", t.Name, ErrModel, err)
		}
		t.ExternalData = append(place(strings.TrimPrefix(filepath.Join(dir, name), "/"), offset, length),
			&onnxpb.StringStringEntryProto{Key: "checksum", Value: known[name]})
	}
	return others, nil
}

// stored returns the bytes of a tensor, none if its file has been removed: a session will say so.
func stored(t *onnxpb.TensorProto) []byte {
	if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
		return t.RawData
	}
	path, offset, length, err := position(t)
	if err != nil {
		return nil
	}
	f, _, err := regular.Open("/"+path, regular.NoLimit)
	if err != nil {
		return nil
	}
	defer f.Close() // opened for reading
	raw := make([]byte, length)
	if _, err := f.ReadAt(raw, offset); err != nil {
		return nil
	}
	return raw
}
