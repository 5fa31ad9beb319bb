package install

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// verify checks the archive at path against its pinned size and checksum.
func (a archive) verify(path string) error {
	digest, encode := sha256.New(), hex.EncodeToString
	algorithm, want, _ := strings.Cut(a.Digest, ":")
	if algorithm == "sha512" {
		digest, encode = sha512.New(), base64.StdEncoding.EncodeToString
	}
	if err := checkSize(path, a.Size); err != nil {
		return err
	}
	sum, err := sumFile(path, digest)
	if err != nil {
		return err
	}
	if got := encode(sum); got != want {
		return fmt.Errorf("verify %s: %w: %s is %s, want %s of %s", path, ErrChecksum, algorithm, got, want, a.Name)
	}
	return nil
}

// installed returns the source whose files are in dir, as check reports. Errors are those of the first source: [ErrChecksum] for a
// changed file, [os.ErrNotExist] for a missing one.
func installed(sources []source, dir string, check func(s source, dir string) error) (source, error) {
	var first error
	for _, s := range sources {
		err := check(s, dir)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChecksum) {
			return source{}, err
		}
		if first == nil {
			first = err
		}
	}
	return source{}, first
}

// verify checks every installed file of s in dir against its pinned size and checksum.
func (s source) verify(dir string) error {
	if err := s.checkSizes(dir); err != nil {
		return err
	}
	for _, m := range s.Files {
		path := filepath.Join(dir, m.Name)
		sum, err := sumFile(path, sha256.New())
		if err != nil {
			return err
		}
		if err := m.check(path, sum); err != nil {
			return err
		}
	}
	return nil
}

// check compares the checksum of the file at path with the pinned one.
func (m File) check(path string, sum []byte) error {
	if got := hex.EncodeToString(sum); got != m.SHA256 {
		return fmt.Errorf("verify %s: %w: sha256 is %s, want %s", path, ErrChecksum, got, m.SHA256)
	}
	return nil
}

// checkSizes checks that every file of s exists in dir with its pinned size. It does not read the files.
func (s source) checkSizes(dir string) error {
	for _, m := range s.Files {
		if err := checkSize(filepath.Join(dir, m.Name), m.Size); err != nil {
			return err
		}
	}
	return nil
}

// checkSize checks that path is a regular file of size bytes.
func checkSize(path string, size int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file: %w", path, ErrChecksum)
	}
	if info.Size() != size {
		return fmt.Errorf("verify %s: %w: it has %d bytes, want %d", path, ErrChecksum, info.Size(), size)
	}
	return nil
}

// sumFile returns the checksum of the file at path.
func sumFile(path string, sum hash.Hash) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := io.Copy(sum, file); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return sum.Sum(nil), nil
}
