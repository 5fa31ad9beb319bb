package install

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"ddiff/internal/regular"
)

// verify checks the archive at path against its pinned size and checksum.
func (a archive) verify(ctx context.Context, path string, progress Progress) error {
	progress.begin(StageVerify)
	sum, err := sumFile(ctx, path, a.size, sha512.New())
	if err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum); got != a.sha512 {
		return fmt.Errorf("verify %s: %w: sha512 is %s, want %s of %s", path, ErrChecksum, got, a.sha512, a.name)
	}
	return nil
}

// verify checks every installed file of r in dir against its pinned size and checksum. [os.ErrNotExist]: a file is
// missing.
func (r release) verify(ctx context.Context, dir string, progress Progress) error {
	if err := r.checkSizes(dir); err != nil {
		return err
	}
	progress.begin(StageCheck)
	for _, m := range r.members {
		path := filepath.Join(dir, m.name)
		sum, err := sumFile(ctx, path, m.size, sha256.New())
		if err != nil {
			return err
		}
		if got := hex.EncodeToString(sum); got != m.sha256 {
			return fmt.Errorf("verify %s: %w: sha256 is %s, want %s", path, ErrChecksum, got, m.sha256)
		}
	}
	return nil
}

// checkSizes checks that every file of r exists in dir with its pinned size. It does not read the files.
func (r release) checkSizes(dir string) error {
	for _, m := range r.members {
		info, err := os.Stat(filepath.Join(dir, m.name))
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() != m.size {
			return fmt.Errorf("%s is damaged: %w: it has %d bytes, want %d", m.name, ErrChecksum, info.Size(), m.size)
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
