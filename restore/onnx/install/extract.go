package install

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ddiff/internal/regular"
)

const (
	maxEntries  = 10_000  // of an archive; releases have about a hundred
	maxUnpacked = 4 << 30 // bytes of an archive; releases have up to 1 GB
)

// extract writes the members of s from the archive at path into dir, which must be empty, and verifies size and checksum
// of each. It writes no other entries and uses no name from the archive as a path; nevertheless it rejects archives with
// paths outside of their directory as [ErrUnsafeArchive].
func (s source) extract(ctx context.Context, path, dir string, progress Progress) error {
	file, _, err := regular.Open(path, regular.NoLimit)
	if err != nil {
		return err
	}
	defer file.Close()
	x := &extraction{dir: dir, pending: make(map[string]File, len(s.Files))}
	for _, m := range s.Files {
		x.pending[m.Path] = m
	}
	progress.begin(StageExtract)
	if s.Archive.zipped() {
		err = x.zip(ctx, file)
	} else {
		err = x.tarGzip(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("extract %s: %w", path, err)
	}
	for name := range x.pending {
		return fmt.Errorf("extract %s: %w: it has no entry %s", path, ErrChecksum, name)
	}
	return nil
}

// extraction is the extraction of one archive.
type extraction struct {
	dir     string
	pending map[string]File // members not yet written, by path in the archive
	entries int
}

func (x *extraction) tarGzip(ctx context.Context, file io.Reader) error {
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	defer unzipped.Close()
	limited := &io.LimitedReader{R: unzipped, N: maxUnpacked}
	reader := tar.NewReader(limited)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if limited.N <= 0 {
			return fmt.Errorf("%w: it unpacks to more than %d bytes", ErrUnsafeArchive, int64(maxUnpacked))
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // entry checks all names
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		regular := header.Typeflag == tar.TypeReg
		if err := x.entry(ctx, header.Name, regular, header.Size, reader); err != nil {
			return err
		}
	}
}

func (x *extraction) zip(ctx context.Context, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	reader, err := zip.NewReader(file, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // entry checks all names
		return err
	}
	for _, f := range reader.File {
		if err := x.zipEntry(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) zipEntry(ctx context.Context, f *zip.File) error {
	if _, ok := x.pending[f.Name]; !ok {
		return x.entry(ctx, f.Name, f.Mode().IsRegular(), int64(f.UncompressedSize64), nil)
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	return x.entry(ctx, f.Name, f.Mode().IsRegular(), int64(f.UncompressedSize64), content)
}

// entry checks one entry of the archive and writes it if it is a member of the source.
func (x *extraction) entry(ctx context.Context, name string, regular bool, size int64, content io.Reader) error {
	x.entries++
	if x.entries > maxEntries {
		return fmt.Errorf("%w: it has more than %d entries", ErrUnsafeArchive, maxEntries)
	}
	if strings.ContainsAny(name, "\\\x00") || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("%w: entry %q leaves its directory", ErrUnsafeArchive, name)
	}
	m, ok := x.pending[name]
	if !ok {
		return nil
	}
	if !regular || size != m.Size {
		return fmt.Errorf("%w: %s is not a file of %d bytes", ErrChecksum, name, m.Size)
	}
	delete(x.pending, name)
	return m.write(filepath.Join(x.dir, m.Name), contextReader{ctx, content})
}

// write writes the member from content to a new file at path. It syncs the file, because loading does not verify the
// checksum again.
func (m File) write(path string, content io.Reader) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(content, m.Size)); err != nil {
		return fmt.Errorf("write %s: %w", m.Path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.SHA256 {
		return fmt.Errorf("verify %s: %w: sha256 is %s, want %s", m.Path, ErrChecksum, got, m.SHA256)
	}
	return file.Sync()
}
