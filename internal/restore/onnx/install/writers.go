package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkWriters returns ErrWriters if a user other than this one and root may change files of a release in its directory, or replace the
// directory or one above it. The caller has checked sizes alone, and a digest would not help: the file may change before it is loaded.
func checkWriters(dir string, files []File) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := checkWriter(filepath.Join(dir, f.Name), 0o022); err != nil {
			return err
		}
	}
	// The program makes the directory and the one above it, and never for a group.
	for own := 2; ; own-- {
		forbidden := fs.FileMode(0o022)
		if own <= 0 {
			forbidden = 0o002
		}
		if err := checkWriter(dir, forbidden); err != nil {
			return err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

// checkWriter returns ErrWriters if a path belongs to another user, or its mode has one of the bits.
func checkWriter(path string, forbidden fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int64(stat.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%w: %s belongs to user %d", ErrWriters, path, stat.Uid)
	}
	// In a folder such as /tmp a user replaces only files of that user.
	if info.Mode()&forbidden != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%w: %s has mode %04o", ErrWriters, path, info.Mode().Perm())
	}
	return nil
}
