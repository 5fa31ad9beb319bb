package install

import (
	"context"
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

	"ddiff/internal/regular"
)

// verify checks the archive at path against its pinned size and checksum.
func (a archive) verify(ctx context.Context, path string, progress Progress) error {
	progress.begin(StageVerify)
	digest, encode := sha256.New(), hex.EncodeToString
	algorithm, want, _ := strings.Cut(a.Digest, ":")
	if algorithm == "sha512" {
		digest, encode = sha512.New(), base64.StdEncoding.EncodeToString
	}
	sum, err := sumFile(ctx, path, a.Size, digest)
	if err != nil {
		return err
	}
	if got := encode(sum); got != want {
		return fmt.Errorf("verify %s: %w: %s is %s, want %s of %s", path, ErrChecksum, algorithm, got, want, a.Name)
	}
	return nil
}

// installed returns the source whose files are in dir. Errors are those of the first source: [ErrChecksum] for a changed
// file, [os.ErrNotExist] for a missing one.
func installed(ctx context.Context, sources []source, dir string, progress Progress) (source, error) {
	var first error
	for _, s := range sources {
		err := s.verify(ctx, dir, progress)
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
func (s source) verify(ctx context.Context, dir string, progress Progress) error {
	if err := s.checkSizes(dir); err != nil {
		return err
	}
	progress.begin(StageCheck)
	for _, m := range s.Files {
		path := filepath.Join(dir, m.Name)
		sum, err := sumFile(ctx, path, m.Size, sha256.New())
		if err != nil {
			return err
		}
		if got := hex.EncodeToString(sum); got != m.SHA256 {
			return fmt.Errorf("verify %s: %w: sha256 is %s, want %s", path, ErrChecksum, got, m.SHA256)
		}
	}
	return nil
}

// checkSizes checks that every file of s exists in dir with its pinned size. It does not read the files.
func (s source) checkSizes(dir string) error {
	for _, m := range s.Files {
		info, err := os.Stat(filepath.Join(dir, m.Name))
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() != m.Size {
			return fmt.Errorf("%s is damaged: %w: it has %d bytes, want %d", m.Name, ErrChecksum, info.Size(), m.Size)
		}
	}
	return nil
}

// sumFile returns the checksum of the file at path, which must have size bytes.
func sumFile(ctx context.Context, path string, size int64, sum hash.Hash) ([]byte, error) {
	file, found, err := regular.Open(path, regular.NoLimit)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if found != size {
		return nil, fmt.Errorf("verify %s: %w: it has %d bytes, want %d", path, ErrChecksum, found, size)
	}
	if _, err := io.Copy(sum, contextReader{ctx, file}); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return sum.Sum(nil), nil
}
