package prior

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/modelfile"
)

// A bundle travels and has its digest as one archive: an uncompressed tar of bundle.json and the parts in the order of
// BundleCard.Roles, with fixed names and headers. Equal bundles have equal archives. The digest is part of the identity of items: never
// change the bytes.

// tarBlock is the size of a header in a tar archive; contents are padded to a multiple of it.
const tarBlock = 512

// isArchive reports whether data is a tar archive. A model begins with another byte.
func isArchive(data []byte) bool {
	const magic = "ustar"
	return len(data) >= tarBlock && string(data[257:257+len(magic)]) == magic
}

// ReadBundleCard reads bundle.json in dir. The error wraps ErrBundle.
func ReadBundleCard(dir string) (*BundleCard, error) {
	path := filepath.Join(dir, CardName)
	data, err := regular.Read(path, regular.MaxConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	return ParseBundleCard(path, data)
}

// readBundle returns the archive of the bundle in dir, with its models as read returns them. It checks the digests of the files.
func readBundle(dir string, read func(path string) ([]byte, error)) ([]byte, error) {
	c, err := ReadBundleCard(dir)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, r := range c.Roles() {
		path := filepath.Join(dir, c.Files[r.Name].File)
		if sum, err := regular.Digest(path, modelfile.MaxFileBytes); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, r.Name, err)
		} else if sum != c.Files[r.Name].SHA256 {
			return nil, altered(dir, c.Files[r.Name].File)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBundle, r.Name, err)
		}
		total += info.Size() + 2*tarBlock
	}
	if total > modelfile.MaxFileBytes {
		return nil, tooLarge(dir)
	}
	packed := *c
	packed.Files = map[string]BundleFile{}
	for _, r := range c.Roles() {
		packed.Files[r.Name] = BundleFile{File: r.Name + ".onnx", SHA256: regular.SHA256(nil)} // a digest of the same length
	}
	text, err := json.Marshal(packed)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(int(total) + 4*tarBlock + int(regular.MaxConfigBytes)>>4)
	w := tar.NewWriter(&out)
	if err := add(w, CardName, text); err != nil {
		return nil, err
	}
	for _, r := range c.Roles() { // one part is in memory beside the archive
		data, err := read(filepath.Join(dir, c.Files[r.Name].File))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBundle, err)
		}
		name := r.Name + ".onnx"
		packed.Files[r.Name] = BundleFile{File: name, SHA256: regular.SHA256(data)} // of a file with its data embedded
		if err := add(w, name, data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(packed); err != nil {
		return nil, err
	}
	copy(out.Bytes()[tarBlock:], text)
	if out.Len() > modelfile.MaxFileBytes {
		return nil, tooLarge(dir)
	}
	return out.Bytes(), nil
}

func altered(bundle, file string) error {
	return fmt.Errorf("%w %s: %s was altered: its SHA-256 differs from %s; export the bundle again", ErrBundle, bundle, file, CardName)
}

func tooLarge(bundle string) error {
	return fmt.Errorf("%w %s: %w: its parts together exceed 2 GiB, the limit of one graph; export the bundle with --float16 or --external-data",
		ErrBundle, bundle, regular.ErrTooLarge)
}

func add(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// unpack returns the card and the parts of an archive, which share its memory. It checks the digests.
func unpack(file string, data []byte) (*BundleCard, map[string][]byte, error) {
	found := map[string][]byte{}
	rest := bytes.NewReader(data)
	for r := tar.NewReader(rest); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w %s: read the archive: %w", ErrBundle, file, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		begin := int64(len(data) - rest.Len()) // the reader stops behind the header
		if h.Size < 0 || h.Size > int64(len(data))-begin {
			return nil, nil, fmt.Errorf("%w %s: the archive is cut short at %s", ErrBundle, file, h.Name)
		}
		found[filepath.Base(h.Name)] = data[begin : begin+h.Size : begin+h.Size]
	}
	text, ok := found[CardName]
	if !ok {
		return nil, nil, fmt.Errorf("%w %s: the archive has no %s", ErrBundle, file, CardName)
	}
	c, err := ParseBundleCard(filepath.Join(file, CardName), text)
	if err != nil {
		return nil, nil, err
	}
	parts := map[string][]byte{}
	for _, r := range c.Roles() {
		f := c.Files[r.Name]
		part, ok := found[f.File]
		switch {
		case !ok:
			return nil, nil, fmt.Errorf("%w %s: the archive has no %s, the %s of its card", ErrBundle, file, f.File, r.Name)
		case regular.SHA256(part) != f.SHA256:
			return nil, nil, altered(file, f.File)
		}
		parts[r.Name] = part
	}
	return c, parts, nil
}
