package regular

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file with these permissions atomically and durably, see [Create].
func Replace(path string, data []byte, mode fs.FileMode) error {
	return Create(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Create writes a file with these permissions, less the umask, atomically and durably: it writes and syncs a temporary file in the same directory and
// renames it. An error of write leaves the file as it was.
func Create(path string, mode fs.FileMode, write func(w io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), ".ddiff-"+rand.Text()+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SHA256 returns the digest of data, in lower-case hex.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
