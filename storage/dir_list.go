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
		start := prefix[:max(0, strings.LastIndexByte(prefix, '/'))]
		w := &walk{dir: d, prefix: prefix, yield: yield}
		if err := w.visit(ctx, start); err != nil && !errors.Is(err, errStopped) {
			yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

// errStopped ends a walk after its consumer left the loop.
var errStopped = errors.New("stopped")

type walk struct {
	dir    *Dir
	prefix string
	yield  func(Info, error) bool
}

// visit yields the objects below a directory, "" for the root.
func (w *walk) visit(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(w.dir.file(dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	// Directories sort with a trailing slash, as their keys do: "a-b", "a/b", "a0".
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, entry := range entries {
		if err := w.entry(ctx, path.Join(dir, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

// entry yields a file with the prefix, or visits a directory that may contain such files.
func (w *walk) entry(ctx context.Context, key string, entry fs.DirEntry) error {
	if CheckKey(key) != nil {
		return nil //nolint:nilerr // a foreign file
	}
	if entry.IsDir() {
		below := key + "/"
		if strings.HasPrefix(below, w.prefix) || strings.HasPrefix(w.prefix, below) {
			return w.visit(ctx, key)
		}
		return nil
	}
	if !strings.HasPrefix(key, w.prefix) || !entry.Type().IsRegular() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted since the directory was read
	}
	if err != nil {
		return err
	}
	if !w.yield(Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
		return errStopped
	}
	return nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
