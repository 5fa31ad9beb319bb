package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// writeArchive writes the files below dir to a gzipped tar archive, with their names below prefix. Its bytes depend on
// names, contents and executable bits only, and on the given time: names are sorted, and owners are 0.
func writeArchive(file, dir, prefix string, modified time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: path.Join(prefix, filepath.ToSlash(relative)), ModTime: modified, Format: tar.FormatPAX,
			Typeflag: tar.TypeReg, Mode: 0o644, Size: info.Size(),
		}
		switch {
		case entry.IsDir():
			header.Typeflag, header.Mode, header.Size, header.Name = tar.TypeDir, 0o755, 0, header.Name+"/"
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is no file", name)
		case info.Mode()&0o100 != 0:
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil || entry.IsDir() {
			return err
		}
		return copyFile(archive, name)
	})
	return errors.Join(err, archive.Close(), compressed.Close())
}

// copyFile writes the content of a file.
func copyFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, f.Close())
}

// place copies a file.
func place(from, to string) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(copyFile(out, from), out.Close())
}

// digest returns the SHA-256 of a file in hexadecimal.
func digest(name string) (string, error) {
	sum := sha256.New()
	if err := copyFile(sum, name); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeSums writes SHA256SUMS for the named files of dir, in the form of sha256sum.
func writeSums(dir string, names []string) error {
	var lines strings.Builder
	for _, name := range names {
		sum, err := digest(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
