package install

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// extract writes the files of s from its verified archive at path into dir, and verifies each. It uses no name from the archive as a path.
func (s source) extract(ctx context.Context, path, dir string) error {
	x := extraction{dir: dir, pending: make(map[string]File, len(s.Files))}
	for _, m := range s.Files {
		x.pending[m.Path] = m
	}
	read := x.tarGzip
	if s.Archive.zipped() {
		read = x.zip
	}
	err := read(ctx, path)
	for name := range x.pending {
		if err == nil {
			err = fmt.Errorf("%w: it has no entry %s", ErrChecksum, name)
		}
	}
	if err != nil {
		return fmt.Errorf("extract %s: %w", path, err)
	}
	return nil
}

// extraction is the extraction of one archive.
type extraction struct {
	dir     string
	pending map[string]File // files not yet written, by path in the archive
}

func (x *extraction) tarGzip(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	reader := tar.NewReader(unzipped)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.entry(ctx, header.Name, reader); err != nil {
			return err
		}
	}
}

func (x *extraction) zip(ctx context.Context, path string) error {
	reader, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // opened for reading
	for _, f := range reader.File {
		content, err := f.Open()
		if err != nil {
			return err
		}
		if err := errors.Join(x.entry(ctx, f.Name, content), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// entry writes an entry of the archive if it is a file of the source.
func (x *extraction) entry(ctx context.Context, name string, content io.Reader) error {
	m, ok := x.pending[name]
	if !ok {
		return context.Cause(ctx)
	}
	delete(x.pending, name)
	return errors.Join(context.Cause(ctx), m.write(filepath.Join(x.dir, m.Name), content))
}

// write writes the file from content to a new file at path. It syncs the file, because loading does not verify the
// checksum again.
func (m File) write(path string, content io.Reader) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), content); err != nil {
		return fmt.Errorf("write %s: %w", m.Path, err)
	}
	return errors.Join(m.check(path, sum.Sum(nil)), file.Sync())
}
