package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// OpenFolder opens the folder at a slash-separated path below another one, "." for that one. Nobody leads it elsewhere: it follows no
// link, and a folder that is replaced by a link meanwhile leads to another place in its parent at most. A file or a link in the place of
// a folder is [syscall.ENOTDIR].
func OpenFolder(in *os.Root, path string) (*os.Root, error) {
	at, err := in.OpenRoot(".")
	for name := range strings.SplitSeq(path, "/") {
		if err != nil || name == "." {
			return at, err
		}
		parent := at
		at, err = openChild(parent, name)
		parent.Close() // opened for reading
	}
	return at, err
}

// openChild opens a folder in another one.
func openChild(in *os.Root, name string) (*os.Root, error) {
	info, err := in.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, pathError(name, fmt.Errorf("%w but a link, which is not followed; remove it", syscall.ENOTDIR))
	case !info.IsDir():
		return nil, pathError(name, syscall.ENOTDIR)
	}
	return in.OpenRoot(name + "/.") // opening a pipe of this name, which replaces the folder now, would block
}

// OpenMadeFolder is [OpenFolder] that creates missing folders, with entries that survive a power failure.
func OpenMadeFolder(in *os.Root, path string) (*os.Root, error) {
	at, err := in.OpenRoot(".")
	for name := range strings.SplitSeq(path, "/") {
		if err != nil || name == "." {
			return at, err
		}
		parent := at
		at, err = openChild(parent, name)
		if errors.Is(err, fs.ErrNotExist) {
			at, err = makeChild(parent, name)
		}
		parent.Close() // opened for reading
	}
	return at, err
}

func makeChild(in *os.Root, name string) (*os.Root, error) {
	// Another process may create it now.
	if err := in.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := SyncFolder(in); err != nil {
		return nil, err
	}
	return openChild(in, name)
}

// SyncFolder writes the entries of a folder to the disk. It is no error that a file system cannot sync folders.
func SyncFolder(folder *os.Root) error {
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// IsOwn reports whether a file belongs to the user of this process.
func IsOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}

// IsPrivate reports whether a path names a folder of the user of this process, not a link to one, to which nobody else may write.
func IsPrivate(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir() && IsOwn(info) && info.Mode().Perm()&0o022 == 0
}
