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

	"ddiff/internal/regular"
)

// List implements Store. It holds the names of one directory and its parents in memory. It skips files with
// invalid keys and everything but regular files.
func (d *Dir) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		l := listing{ctx: ctx, prefix: prefix, yield: yield}
		// The walk starts at the deepest directory that contains all matching keys.
		dir := path.Dir(prefix + "x")
		err := d.in(dir, func(folder *os.Root) error { return l.walk(folder, dir) })
		if err != nil && !errors.Is(err, errStopped) && !errors.Is(readError(err), ErrNotFound) {
			yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

// errStopped ends a listing whose caller wants no more.
var errStopped = errors.New("stopped")

type listing struct {
	ctx    context.Context
	prefix string
	yield  func(Info, error) bool
}

// walk yields the objects below a folder, "." for the root.
func (l *listing) walk(folder *os.Root, dir string) error {
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return err
	}
	// Directories sort with a trailing slash, as their keys do: "a-b", "a/b", "a0".
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, entry := range entries {
		key := path.Join(dir, entry.Name())
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		if CheckKey(key) != nil { // a foreign file
			continue
		}
		if entry.IsDir() {
			err = l.below(folder, entry.Name(), key)
		} else if strings.HasPrefix(key, l.prefix) && entry.Type().IsRegular() {
			err = l.object(entry, key)
		}
		// It may be deleted, or replaced by a link, since the directory was read.
		if err != nil && !errors.Is(readError(err), ErrNotFound) {
			return err
		}
	}
	return nil
}

// below walks a folder in another one.
func (l *listing) below(parent *os.Root, name, key string) error {
	if below := key + "/"; !strings.HasPrefix(below, l.prefix) && !strings.HasPrefix(l.prefix, below) {
		return nil
	}
	folder, err := regular.OpenFolder(parent, name)
	if err != nil {
		return err
	}
	defer folder.Close() // opened for reading
	return l.walk(folder, key)
}

// object yields an object.
func (l *listing) object(entry fs.DirEntry, key string) error {
	info, err := entry.Info() // in a Root it is known since the directory was read
	if err == nil && info.Mode().IsRegular() && !l.yield(Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
		return errStopped
	}
	return err
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
