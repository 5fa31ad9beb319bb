package modelfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/failure"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxpb"
)

// ErrExternal: a model's data file is missing, cut short, too large or altered.
var ErrExternal = failure.New(failure.Prior, "external data")

// digestKey is the prefix of metadata entries with the digests of data files.
const digestKey = "ddiff.external."

// MaxFileBytes is the size limit of a model file and of its external data, the limit of a protobuf message.
const MaxFileBytes = 2<<30 - 1

// ReadFile returns the bytes of a model file with its external data embedded. Data files lie beside the model and must
// have the digests in its metadata ("ddiff.external." and the data file's name), if there are any. Errors wrap
// ErrExternal or ErrModel, and regular.ErrTooLarge above MaxFileBytes. Use it for files that the user chose; ReadModel, for all others,
// reads no other files.
func ReadFile(path string) ([]byte, error) { return readFile(path, regular.NoLimit) }

// mappedBytes is the least size of a tensor that ReadMapped leaves in its data file: infer.DecodeTensor reads smaller ones.
const mappedBytes = 1<<18 + 1

// ReadMapped is ReadFile for data files of any size: large tensors stay there, and ONNX Runtime maps them. The bytes name the data files with their
// digests and are for ReadModelBeside.
func ReadMapped(path string) ([]byte, error) { return readFile(path, mappedBytes) }

func readFile(path string, mapped int64) ([]byte, error) {
	data, err := regular.Read(path, MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil || m.Graph == nil || len(m.Graph.Node) == 0 {
		return nil, fmt.Errorf("read %s: %w: not an ONNX file, or cut short (%d bytes)", path, ErrModel, len(data))
	}
	changed, err := embed(path, m, mapped)
	if err != nil || !changed {
		return data, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// embed moves external data of tensors of less than mapped bytes into the model, and reports whether there was any external data.
func embed(path string, m *onnxpb.ModelProto, mapped int64) (bool, error) {
	files, total := map[string]*dataFile{}, int64(0)
	defer func() {
		for _, f := range files {
			f.Close() // opened for reading
		}
	}()
	for _, t := range m.Graph.Initializer {
		if t.DataLocation != onnxpb.TensorProto_EXTERNAL {
			continue
		}
		name, offset, length, err := location(t)
		if err != nil {
			return false, fmt.Errorf("read %s: tensor %s: %w: %w", path, t.Name, ErrExternal, err)
		}
		f, ok := files[name]
		if !ok {
			if f, err = openDataFile(filepath.Join(filepath.Dir(path), name), mapped); err != nil {
				return false, fmt.Errorf("read %s: %w", path, err)
			}
			files[name] = f
		}
		if length < 0 {
			length = f.size - offset
		}
		if offset < 0 || length < 0 || offset > f.size-length {
			return false, fmt.Errorf("read %s: %w %s is cut short: tensor %s ends at byte %d of %d", path, ErrExternal, name, t.Name, offset+length, f.size)
		}
		if want := bytesOf(t); length >= mapped && want > 0 {
			if length != want {
				return false, fmt.Errorf("read %s: %w %s: tensor %s has %d bytes, its shape %d", path, ErrExternal, f.Name(), t.Name, length, want)
			}
			t.ExternalData = place(name, offset, length)
			continue
		}
		if total += length; total > MaxFileBytes {
			return false, fmt.Errorf("read %s: %w: %w: it exceeds 2 GiB, the limit of one graph; export the model with --float16", path, ErrExternal, regular.ErrTooLarge)
		}
		t.RawData, t.ExternalData, t.DataLocation = make([]byte, length), nil, onnxpb.TensorProto_DEFAULT
		if _, err := f.ReadAt(t.RawData, offset); err != nil {
			return false, fmt.Errorf("read %s: %w: %w", path, ErrExternal, err)
		}
	}
	if err := checkDigests(files, m, mapped); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return len(files) > 0, nil
}

// bytesOf returns the size of a tensor's data, 0 of a type that large weights do not have.
func bytesOf(t *onnxpb.TensorProto) int64 {
	size := map[onnxpb.TensorProto_DataType]int64{onnxpb.TensorProto_FLOAT: 4, onnxpb.TensorProto_FLOAT16: 2}[onnxpb.TensorProto_DataType(t.DataType)]
	for _, d := range t.Dims {
		size *= d
	}
	return size
}

// checkDigests compares the digests of data files with those in the metadata, and adds those of files in which data stay.
func checkDigests(files map[string]*dataFile, m *onnxpb.ModelProto, mapped int64) error {
	known := digests(m)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		want := known[name]
		if want == "" && mapped == regular.NoLimit {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, files[name]); err != nil {
			return fmt.Errorf("%w: %w", ErrExternal, err)
		}
		got := hex.EncodeToString(sum.Sum(nil))
		if want == "" {
			m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{Key: digestKey + name, Value: got})
		} else if got != want {
			return fmt.Errorf("%w: %s was altered: its SHA-256 is %.12s..., the model has %.12s...; download it again", ErrExternal, files[name].Name(), got, want)
		}
	}
	return nil
}

// digests returns those of data files in a model's metadata.
func digests(m *onnxpb.ModelProto) map[string]string {
	out := map[string]string{}
	for _, e := range m.MetadataProps {
		if name, ok := strings.CutPrefix(e.Key, digestKey); ok {
			out[name] = e.Value
		}
	}
	return out
}

// place is the position of a tensor's data in the form of a file.
func place(name string, offset, length int64) []*onnxpb.StringStringEntryProto {
	return []*onnxpb.StringStringEntryProto{
		{Key: "location", Value: name}, {Key: "offset", Value: strconv.FormatInt(offset, 10)}, {Key: "length", Value: strconv.FormatInt(length, 10)},
	}
}

// location parses and checks the position of a tensor's data. A missing length is −1.
func location(t *onnxpb.TensorProto) (name string, offset, length int64, err error) {
	if name, offset, length, err = position(t); err == nil && (!filepath.IsLocal(name) || filepath.Base(name) != name) {
		err = fmt.Errorf("the location %q is not a file beside the model", name)
	}
	return name, offset, length, err
}

func position(t *onnxpb.TensorProto) (name string, offset, length int64, err error) {
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
	return name, offset, length, nil
}

// dataFile is an open data file.
type dataFile struct {
	*os.File
	size int64
}

// openDataFile opens a data file. mapped is that of embed: without it, the file has at most MaxFileBytes.
func openDataFile(path string, mapped int64) (*dataFile, error) {
	limit := int64(MaxFileBytes)
	if mapped < regular.NoLimit {
		limit = regular.NoLimit
	}
	f, size, err := regular.Open(path, limit)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("%w: %s does not exist; put it beside the model", ErrExternal, path)
	case errors.Is(err, regular.ErrTooLarge):
		return nil, fmt.Errorf("%w: %w, the limit of one graph; export the model with --float16", ErrExternal, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrExternal, err)
	}
	return &dataFile{f, size}, nil
}
