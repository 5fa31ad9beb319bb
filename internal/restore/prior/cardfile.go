package prior

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// SetCard sets entries of the model card of the file at path, which may remain incomplete, and writes the result to target, which may be
// the same file, with the permissions of path. All else stays as it is; external data stays in its files. Errors are ErrCard for an
// invalid entry, modelfile.ErrModel for a file that is not a model, and modelfile.ErrExternal for a target in another directory than external data; they leave
// target unchanged. Load checks the card against the graph.
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
	complete := maps.Clone(metadata)
	for _, r := range required {
		if strings.TrimSpace(complete[keyPrefix+r.key]) == "" {
			complete[keyPrefix+r.key] = r.example
		}
	}
	if _, err := ParseCard(path, complete); err != nil {
		return fmt.Errorf("prior %w", err)
	}
	external := slices.ContainsFunc(m.Graph.Initializer, func(t *onnxpb.TensorProto) bool { return t.DataLocation == onnxpb.TensorProto_EXTERNAL })
	from, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("read prior: %w", err)
	}
	if to, err := os.Stat(filepath.Dir(target)); external && (err != nil || !os.SameFile(from, to)) {
		return fmt.Errorf("write %s: %w of %s lies beside it; write to the same directory, then move all files", target, modelfile.ErrExternal, path)
	}
	m.MetadataProps = nil
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: metadata[k]})
	}
	info, err := os.Stat(path)
	if err == nil {
		data, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	if err == nil {
		err = regular.Replace(target, data, info.Mode().Perm())
	}
	if err == nil { // also what the umask denies new files
		err = os.Chmod(target, info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	return nil
}
