package modelfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	files, total := map[string]*dataFile{}, int64(0)
	defer func() {
		for _, f := range files {
			f.file.Close() // opened for reading
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
		f := files[name]
		if f == nil {
			if f, err = openDataFile(filepath.Join(filepath.Dir(path), name), digests[name]); err != nil {
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
		if total += length; total > MaxFileBytes {
			return false, fmt.Errorf("read %s: %w exceeds 2 GiB, the limit of one graph; export the model with --fp16", path, ErrExternal)
		}
		t.RawData = make([]byte, length)
		if _, err := io.ReadFull(io.NewSectionReader(f.file, offset, length), t.RawData); err != nil {
			return false, fmt.Errorf("read %s: %w: tensor %s: %w", path, ErrExternal, t.Name, err)
		}
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

// dataFile is an open data file.
type dataFile struct {
	file *os.File
	size int64
}

// openDataFile opens a data file and checks its digest unless want is empty. It holds no data in memory.
func openDataFile(path, want string) (*dataFile, error) {
	f, size, err := regular.Open(path, MaxFileBytes)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("%w: %s does not exist; put it beside the model", ErrExternal, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExternal, err)
	}
	if want == "" {
		return &dataFile{f, size}, nil
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		err = fmt.Errorf("%w: %w", ErrExternal, err)
	} else if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		err = fmt.Errorf("%w: %s was altered: its SHA-256 is %.12s..., the model has %.12s...; download it again", ErrExternal, path, got, want)
	}
	if err != nil {
		f.Close() // opened for reading
		return nil, err
	}
	return &dataFile{f, size}, nil
}
