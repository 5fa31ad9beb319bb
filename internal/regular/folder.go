package regular

import (
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

// IsOwn reports whether a file belongs to the user of this process.
func IsOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}
