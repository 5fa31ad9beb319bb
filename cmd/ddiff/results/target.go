package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// origin reads outputs: files of this machine, or objects of a store, whose paths are keys.
type origin struct {
	// get returns the bytes of a file. The error for a missing file wraps fs.ErrNotExist.
	get func(ctx context.Context, path string) ([]byte, error)
	// show returns the path or the address of a file for people.
	show func(path string) string
}

// thisMachine is the origin of files.
func thisMachine() origin {
	return origin{get: manifest.Files{}.Get, show: func(path string) string { return path }}
}

// storeOrigin is the origin of the objects of a store.
func storeOrigin(store storage.Store, address string) origin {
	return origin{
		get: func(ctx context.Context, key string) ([]byte, error) {
			data, err := store.Get(ctx, key)
			if errors.Is(err, storage.ErrNotFound) {
				err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
			}
			return data, err
		},
		show: func(path string) string {
			if !strings.HasPrefix(path, item.ItemsFolder) {
				return path // a source, which is elsewhere
			}
			return storage.Locate(address, path)
		},
	}
}

// target is a restored image that an argument names.
type target struct {
	origin
	path string
}

// restoredImages yields the images that an argument of verify or replay names: a restored.png, a result.json, the
// folder of an item, or an output, on this machine or in a bucket.
func restoredImages(ctx context.Context, arg string) iter.Seq2[target, error] {
	return func(yield func(target, error) bool) {
		var err error
		if manifest.IsAddress(arg) {
			err = storedImages(ctx, arg, func(t target) bool { return yield(t, nil) })
		} else {
			err = localImages(arg, func(t target) bool { return yield(t, nil) })
		}
		if err != nil {
			yield(target{}, err)
		}
	}
}

// localImages calls yield with each image that a path names, until it returns false.
func localImages(arg string, yield func(target) bool) error {
	one := func(path string) error { yield(target{thisMachine(), path}); return nil }
	info, err := os.Stat(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usage(fmt.Errorf("%s: no such file or folder; give a restored.png, the folder of an item, or an output", arg))
	}
	if err != nil {
		return cli.Usage(err)
	}
	if !info.IsDir() {
		// A link under restored/ leads to the folder of its item.
		if path, err := filepath.EvalSymlinks(arg); err == nil && filepath.Base(path) == item.FileRestored {
			return one(path)
		}
		if filepath.Base(arg) == item.FileResult {
			return one(filepath.Join(filepath.Dir(arg), item.FileRestored))
		}
		return one(arg)
	}
	for _, name := range []string{item.FileRestored, item.FileResult} {
		if _, err := os.Stat(filepath.Join(arg, name)); err == nil {
			return one(filepath.Join(arg, item.FileRestored))
		}
	}
	entries, err := os.ReadDir(filepath.Join(arg, "items"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Usage(err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() {
			found = true
			if !yield(target{thisMachine(), filepath.Join(arg, "items", e.Name(), item.FileRestored)}) {
				return nil
			}
		}
	}
	if !found {
		return cli.Usage(fmt.Errorf("%s: the folder is neither that of an item nor an output with items", arg))
	}
	return nil
}

// storedImages is localImages for the address of a store.
func storedImages(ctx context.Context, arg string, yield func(target) bool) error {
	address, id := itemAddress(arg)
	opened, err := storage.Open(ctx, address, storage.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", redact.Address(address), err)
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	from := storeOrigin(opened.Store, address)
	if id != "" {
		yield(target{from, item.Key(id, item.FileRestored)})
		return nil
	}
	found := false
	for id, err := range itemIDs(ctx, opened.Store) {
		if err != nil {
			return fmt.Errorf("list %s: %w", address, err)
		}
		found = true
		if !yield(target{from, item.Key(id, item.FileRestored)}) {
			return nil
		}
	}
	if !found {
		return cli.Usage(fmt.Errorf("%s: no items below this address; give the address of an output", arg))
	}
	return nil
}

// itemPath matches the end of an address that names one item of an output.
var itemPath = regexp.MustCompile(`/items/([0-9a-f]{64})(/[^/?]*)?/?(\?|$)`)

// itemAddress divides an address into that of an output and the identity of an item, or "" where it names an output.
func itemAddress(address string) (output, id string) {
	m := itemPath.FindStringSubmatchIndex(address)
	if m == nil {
		return address, ""
	}
	return address[:m[0]] + address[m[6]:], address[m[2]:m[3]]
}

// itemIDs yields the identities of the items in a store, in order.
func itemIDs(ctx context.Context, store source) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for info, err := range store.List(ctx, item.ItemsFolder) {
			if err != nil {
				yield("", err)
				return
			}
			id, _, nested := strings.Cut(strings.TrimPrefix(info.Key, item.ItemsFolder), "/")
			if !nested || id == last {
				continue
			}
			if last = id; !yield(id, nil) {
				return
			}
		}
	}
}
