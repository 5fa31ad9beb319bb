package storage_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ddiff/storage"
)

func newDir(t *testing.T, path string) *storage.Dir {
	t.Helper()
	d, err := storage.NewDir(path)
	must(t, err)
	return d
}

func TestDirContract(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) storage.Store { return newDir(t, t.TempDir()) })
}

// files lists all entries below root except directories.
func files(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	must(t, err)
	return names
}

func TestDirStoresOneFilePerObject(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "made", "on open")
	d := newDir(t, root)
	must(t, d.Create(t.Context(), "items/1/restored.png", []byte("png")))
	must(t, d.Put(t.Context(), "results.csv", []byte("a,b\n")))
	got, err := os.ReadFile(filepath.Join(root, "items", "1", "restored.png"))
	if err != nil || string(got) != "png" {
		t.Errorf("file contains %q, %v", got, err)
	}
	if names := files(t, root); len(names) != 2 {
		t.Errorf("files %q, want only the two objects", names)
	}
}

func TestDirOpenWritesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	newDir(t, root)
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 0 {
		t.Fatalf("entries %v, %v, want none", entries, err)
	}
}

// TestAttackTemporaryFiles: nobody loses a file by an output that is opened. The first write removes old temporary files that have the
// names of this program and belong to its user, and follows no link.
func TestAttackTemporaryFiles(t *testing.T) {
	t.Parallel()
	root, elsewhere, linked := t.TempDir(), t.TempDir(), t.TempDir()
	ours := func(folder string) string { return filepath.Join(folder, "ddiff-"+rand.Text()) }
	make := func(path string, age time.Duration) string {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("half an obj"), 0o644))
		then := time.Now().Add(-age)
		must(t, os.Chtimes(path, then, then))
		return path
	}
	temp := filepath.Join(root, ".tmp")
	stale, young := make(ours(temp), 61*time.Minute), make(ours(temp), 59*time.Minute)
	kept := []string{
		young, make(filepath.Join(temp, "notes.txt"), 48*time.Hour), make(filepath.Join(temp, "ddiff-notes"), 48*time.Hour),
		make(filepath.Join(temp, rand.Text()), 48*time.Hour), make(ours(elsewhere), 48*time.Hour),
	}
	link, folder := ours(temp), ours(temp)
	must(t, os.Symlink(kept[4], link))
	must(t, os.Mkdir(folder, 0o755))
	kept = append(kept, link, folder)
	if os.Geteuid() == 0 {
		foreign := make(ours(temp), 48*time.Hour)
		must(t, os.Lchown(foreign, 12345, 12345))
		kept = append(kept, foreign)
	}
	must(t, os.Symlink(elsewhere, filepath.Join(linked, ".tmp")))
	all := append(slices.Clone(kept), stale)
	wantFiles := func(state string, paths ...string) {
		t.Helper()
		for _, path := range paths {
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("%s: %v", state, err)
			}
		}
	}
	for _, dir := range []string{root, linked} {
		for _, readOnly := range []bool{true, false} {
			opened, err := storage.Open(t.Context(), dir, storage.Options{ReadOnly: readOnly})
			must(t, err)
			for info, err := range opened.Store.List(t.Context(), "") {
				t.Errorf("List yields %+v, %v, want nothing", info, err)
			}
			must(t, opened.Close())
			wantFiles("after reading", all...)
		}
	}
	must(t, newDir(t, root).Put(t.Context(), "a", nil))
	newDir(t, linked).Put(t.Context(), "a", nil) //nolint:errcheck // it may refuse the link
	wantFiles("after a write", kept...)
	if _, err := os.Lstat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leftover of a dead writer: %v, want ErrNotExist", err)
	}
}

func TestDirListSkipsForeignEntries(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := newDir(t, root)
	must(t, d.Put(t.Context(), "object", []byte("x")))
	lock, err := storage.AcquireLock(root)
	must(t, err)
	defer lock.Unlock() //nolint:errcheck // the test is over
	must(t, os.WriteFile(filepath.Join(root, `back\slash`), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(root, "empty"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644))
	wantKeys(t, d, "", "object")
	if _, err := d.Get(t.Context(), "fifo"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Get of a named pipe = %v, want ErrNotFound", err)
	}
}

func TestDirConflict(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := newDir(t, root)
	must(t, d.Put(t.Context(), "file", []byte("x")))
	must(t, d.Put(t.Context(), "dir/object", []byte("x")))
	before := files(t, root)
	for _, key := range []string{"file/below", "file/far/below", "dir"} {
		if err := d.Put(t.Context(), key, []byte("y")); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("Put(%q) = %v, want ErrConflict", key, err)
		}
		if err := d.Create(t.Context(), key, []byte("y")); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("Create(%q) = %v, want ErrConflict", key, err)
		}
	}
	if after := files(t, root); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("files %q, want %q", after, before)
	}
	if _, err := storage.NewDir(filepath.Join(root, "file")); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("NewDir on a file = %v, want ErrConflict", err)
	}
}

// mountTmpfs mounts a new file system, or skips the test.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	path := t.TempDir()
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		t.Skipf("mount a tmpfs: %v; run this test as root with CAP_SYS_ADMIN", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", path, err)
		}
	})
	return path
}

// TestDirCreateBesideSpecialFile: an object that Get would not find is not one that exists.
func TestDirCreateBesideSpecialFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := newDir(t, root)
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	must(t, os.Symlink("nowhere", filepath.Join(root, "dangling")))
	for _, key := range []string{"pipe", "dangling"} {
		if err := d.Create(t.Context(), key, []byte("x")); !errors.Is(err, storage.ErrConflict) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("Create(%q) = %v, want ErrConflict with the remedy", key, err)
		}
	}
}

func TestDirFullDisk(t *testing.T) {
	root := mountTmpfs(t, "size=256k")
	d := newDir(t, root)
	ctx := t.Context()
	must(t, d.Put(ctx, "kept", []byte("before")))
	before := files(t, root)
	tooMuch := bytes.Repeat([]byte{7}, 1<<20)
	for name, write := range map[string]func() error{
		"Put":             func() error { return d.Put(ctx, "deep/er/large", tooMuch) },
		"Put over an old": func() error { return d.Put(ctx, "kept", tooMuch) },
		"Create":          func() error { return d.Create(ctx, "deep/er/large", tooMuch) },
	} {
		err := write()
		if !errors.Is(err, storage.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s = %v, want ErrNoSpace that wraps ENOSPC", name, err)
		}
	}
	if after := files(t, root); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("files %q, want %q", after, before)
	}
	if _, err := os.Stat(filepath.Join(root, "deep")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of the refused object: %v, want ErrNotExist", err)
	}
	if got, err := d.Get(ctx, "kept"); err != nil || string(got) != "before" {
		t.Errorf("Get = %q, %v, want the old bytes", got, err)
	}
	if err := d.Create(ctx, "small", []byte("fits")); err != nil {
		t.Errorf("small write on the full disk: %v", err)
	}
}

// TestWriteErrors checks errors of disks that the other tests cannot bring about.
func TestWriteErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{syscall.EIO: storage.ErrReadOnly, syscall.EDQUOT: storage.ErrNoSpace} {
		if err := storage.WriteError(errno); !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("%v becomes %v, want %v", errno, err, want)
		}
	}
}

func TestDirReadOnlyDisk(t *testing.T) {
	root := mountTmpfs(t, "size=256k")
	ctx := t.Context()
	must(t, newDir(t, root).Put(ctx, "a/b", []byte("x")))
	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("make a tmpfs read-only: %v", err)
	}
	d := newDir(t, root)
	if got, err := d.Get(ctx, "a/b"); err != nil || string(got) != "x" {
		t.Errorf("Get = %q, %v", got, err)
	}
	for name, err := range map[string]error{
		"Put":    d.Put(ctx, "a/c", nil),
		"Create": d.Create(ctx, "a/c", nil),
		"Delete": d.Delete(ctx, "a/b"),
	} {
		if !errors.Is(err, storage.ErrReadOnly) || !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s = %v, want ErrReadOnly that wraps EROFS", name, err)
		}
	}
	if _, err := storage.AcquireLock(root); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("AcquireLock = %v, want ErrReadOnly", err)
	}
	if _, err := storage.NewDir(filepath.Join(root, "new")); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("NewDir = %v, want ErrReadOnly", err)
	}
}

func TestDirNoPermission(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("permissions do not apply to root; run this test as another user")
	}
	root := t.TempDir()
	d := newDir(t, root)
	must(t, os.Chmod(root, 0o555))
	t.Cleanup(func() { os.Chmod(root, 0o755) }) //nolint:errcheck // lets TempDir be removed
	if err := d.Put(t.Context(), "a", nil); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("Put = %v, want ErrReadOnly", err)
	}
}

func TestDirMaxBytes(t *testing.T) {
	t.Parallel()
	d := newDir(t, t.TempDir())
	d.MaxBytes = 4
	must(t, d.Put(t.Context(), "four", []byte("1234")))
	if err := d.Put(t.Context(), "five", []byte("12345")); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("Put = %v, want ErrTooLarge", err)
	}
	if err := d.Create(t.Context(), "five", []byte("12345")); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("Create = %v, want ErrTooLarge", err)
	}
	if _, err := d.Stat(t.Context(), "five"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat of the refused object = %v, want ErrNotFound", err)
	}
	d.MaxBytes = 3
	if _, err := d.Get(t.Context(), "four"); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("Get = %v, want ErrTooLarge", err)
	}
}

// A write whose temporary file another process removes, because its process was suspended for long, starts again.
func TestDirWritesAgainAfterSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d, err := storage.NewDir(root)
	must(t, err)
	sweeps := 0
	must(t, storage.PutAfter(t.Context(), d, "a/b", []byte("data"), sync.OnceFunc(func() {
		files, err := filepath.Glob(filepath.Join(root, ".tmp", "*"))
		must(t, err)
		for _, f := range files {
			must(t, os.Chtimes(f, time.Time{}, time.Now().Add(-2*time.Hour)))
			sweeps++
		}
		must(t, newDir(t, root).Put(t.Context(), "c", nil))
	})))
	if got, err := d.Get(t.Context(), "a/b"); string(got) != "data" || err != nil || sweeps != 1 {
		t.Errorf("%q, error %v, after %d sweeps", got, err, sweeps)
	}
}
