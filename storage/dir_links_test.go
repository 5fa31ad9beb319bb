package storage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ddiff/storage"
)

// TestAttackLinks: no link below a directory leads a call to another place, inside the directory or outside. The directory itself may be
// a link.
func TestAttackLinks(t *testing.T) {
	t.Parallel()
	real, outside := t.TempDir(), t.TempDir()
	root := filepath.Join(t.TempDir(), "root")
	must(t, os.Symlink(real, root))
	d := newDir(t, root)
	ctx := t.Context()
	must(t, d.Put(ctx, "a/object", []byte("x")))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("key"), 0o644))
	must(t, os.Mkdir(filepath.Join(outside, "empty"), 0o755))
	for name, target := range map[string]string{
		"file": filepath.Join(outside, "secret"), "inside": "a/object", "folder": outside, "proc": "/proc/self",
		"a/up": "..", "a/nowhere": "nothing", "loop": "loop",
	} {
		must(t, os.Symlink(target, filepath.Join(root, name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o666))
	before := snapshot(t, outside) + snapshot(t, real)
	for _, key := range []string{
		"file", "inside", "folder", "folder/secret", "folder/empty/x", "folder/new", "proc/environ", "proc/root/etc/passwd", "a/up/a/object", "a/up/new",
		"a/nowhere", "a/nowhere/x", "loop", "loop/x", "pipe", "pipe/x",
	} {
		if data, err := d.Get(ctx, key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get(%s) = %q, %v, want ErrNotFound", key, data, err)
		}
		if info, err := d.Stat(ctx, key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Stat(%s) = %v, %v, want ErrNotFound", key, info, err)
		}
		if err := d.Put(ctx, key, []byte("new")); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("Put(%s) = %v, want ErrConflict", key, err)
		}
		if err := d.Create(ctx, key, []byte("new")); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("Create(%s) = %v, want ErrConflict", key, err)
		}
		if err := d.Delete(ctx, key); err != nil {
			t.Errorf("Delete(%s) = %v", key, err)
		}
		for info, err := range d.List(ctx, key) {
			t.Errorf("List(%s) yields %v, %v", key, info, err)
		}
	}
	wantKeys(t, d, "", "a/object")
	if after := snapshot(t, outside) + snapshot(t, real); after != before {
		t.Errorf("the files change from\n%s\nto\n%s", before, after)
	}
	must(t, os.Remove(filepath.Join(root, ".tmp")))
	must(t, os.Symlink(outside, filepath.Join(root, ".tmp")))
	if err := d.Put(ctx, "b", nil); !errors.Is(err, storage.ErrConflict) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("Put with temporary files elsewhere = %v, want ErrConflict with the remedy", err)
	}
}

// TestAttackSwappedFolder: a folder that is replaced by a link, a file or a pipe during a call leads it nowhere, and does not block it.
func TestAttackSwappedFolder(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	d := newDir(t, root)
	ctx := t.Context()
	must(t, d.Put(ctx, "items/a/object", []byte("x")))
	must(t, os.Mkdir(filepath.Join(outside, "a"), 0o755))
	for _, name := range []string{"object", "a/object"} {
		must(t, os.WriteFile(filepath.Join(outside, name), []byte("secret"), 0o644))
	}
	before := snapshot(t, outside)
	at := func(name string) string { return filepath.Join(root, name) }
	must(t, os.Symlink(outside, at("items/link")))
	must(t, os.Symlink(outside, at("link")))
	must(t, syscall.Mkfifo(at("items/pipe"), 0o666))
	must(t, os.Mkdir(at("temp"), 0o755))
	must(t, os.Symlink(outside, at("temp/link")))
	done := make(chan struct{})
	var swapper, callers sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			pairs := [][2]string{{"items/a", "items/link"}, {"items/a", "items/pipe"}, {"items", "link"}, {".tmp", "temp/link"}}
			pair := pairs[i%len(pairs)]
			for range 2 { // there and back
				unix.Renameat2(unix.AT_FDCWD, at(pair[0]), unix.AT_FDCWD, at(pair[1]), unix.RENAME_EXCHANGE) //nolint:errcheck // the folder may be missing
			}
		}
	})
	for range 2 {
		callers.Go(func() {
			for range 100 {
				if data, err := d.Get(ctx, "items/a/object"); err == nil && string(data) != "x" {
					t.Errorf("Get returns %q", data)
				}
				for info, err := range d.List(ctx, "items/") {
					if err == nil && info.Size != 1 {
						t.Errorf("List yields %v", info)
					}
				}
				d.Put(ctx, "items/a/object", []byte("x")) //nolint:errcheck // the folder may be away
				d.Create(ctx, "items/a/new", []byte("x")) //nolint:errcheck // the folder may be away
				d.Delete(ctx, "items/a/new")              //nolint:errcheck // the folder may be away
				d.Delete(ctx, "items/a/secret")           //nolint:errcheck // there is none
			}
		})
	}
	callers.Wait()
	close(done)
	swapper.Wait()
	if after := snapshot(t, outside); after != before {
		t.Errorf("files elsewhere change from\n%s\nto\n%s", before, after)
	}
}
