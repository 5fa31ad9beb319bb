package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// List implements Store. It holds the names of one directory and its parents in memory. It skips files with
// invalid keys and everything but regular files.
func (d *Dir) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		// The walk starts at the deepest directory that contains all matching keys.
		d.walk(ctx, prefix[:max(0, strings.LastIndexByte(prefix, '/'))], prefix, yield)
	}
}

// walk yields the objects with a prefix below a directory, "" for the root, until an error or until yield returns false, and reports whether
// to go on.
func (d *Dir) walk(ctx context.Context, dir, prefix string, yield func(Info, error) bool) bool {
	failed := func(err error) bool {
		yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
		return false
	}
	if ctx.Err() != nil {
		return failed(ctx.Err())
	}
	entries, err := os.ReadDir(d.file(dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return true
	}
	if err != nil {
		return failed(err)
	}
	// Directories sort with a trailing slash, as their keys do: "a-b", "a/b", "a0".
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, entry := range entries {
		key := path.Join(dir, entry.Name())
		below := key + "/"
		switch {
		case ctx.Err() != nil:
			return failed(ctx.Err())
		case CheckKey(key) != nil: // a foreign file
		case entry.IsDir():
			if (strings.HasPrefix(below, prefix) || strings.HasPrefix(prefix, below)) && !d.walk(ctx, key, prefix, yield) {
				return false
			}
		case strings.HasPrefix(key, prefix) && entry.Type().IsRegular():
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted since the directory was read
			}
			if err != nil {
				return failed(err)
			}
			if !yield(Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return false
			}
		}
	}
	return true
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
