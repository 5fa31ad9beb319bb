package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

// OpenFolder opens the folder at a slash-separated path below another one, "." for that one. Nobody leads it elsewhere: it follows no
// link, and a folder that is replaced by a link meanwhile leads to another place in its parent at most. A file or a link in the place of
// a folder is [syscall.ENOTDIR].
func OpenFolder(in *os.Root, path string) (*os.Root, error) { return walk(in, path, openChild) }

// walk calls step with each folder of a path and the name of the next one.
func walk(in *os.Root, path string, step func(in *os.Root, name string) (*os.Root, error)) (*os.Root, error) {
	if path == "." {
		return in.OpenRoot(".")
	}
	at := in
	for name := range strings.SplitSeq(path, "/") {
		next, err := step(at, name)
		if at != in {
			at.Close() // opened for reading
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
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
	return walk(in, path, func(in *os.Root, name string) (*os.Root, error) {
		folder, err := openChild(in, name)
		if errors.Is(err, fs.ErrNotExist) {
			return makeChild(in, name)
		}
		return folder, err
	})
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

// Synced remembers folders whose own entries are on the disk. The zero value knows none. All methods may be called concurrently.
type Synced struct {
	mu      sync.Mutex
	folders map[string]fs.FileInfo
}

// mostSynced bounds the memory of Synced: it forgets all folders at this number.
const mostSynced = 4096

// OpenMadeFolder is [OpenMadeFolder] after which the entries of all folders of the path survive a power failure: also of those that
// another process has made and not synced yet.
func (s *Synced) OpenMadeFolder(in *os.Root, path string) (*os.Root, error) {
	whole := ""
	return walk(in, path, func(in *os.Root, name string) (*os.Root, error) {
		whole += "/" + name
		folder, err := openChild(in, name)
		if errors.Is(err, fs.ErrNotExist) {
			if err = in.Mkdir(name, 0o755); err == nil || errors.Is(err, fs.ErrExist) { // another process may create it now
				folder, err = openChild(in, name)
			}
		}
		if err != nil {
			return nil, err
		}
		info, err := folder.Stat(".")
		if err == nil && !s.has(whole, info) {
			if err = SyncFolder(in); err == nil {
				s.add(whole, info)
			}
		}
		if err != nil {
			folder.Close() // opened for reading
			return nil, err
		}
		return folder, nil
	})
}

func (s *Synced) has(path string, info fs.FileInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.folders[path]
	return known != nil && os.SameFile(known, info)
}

func (s *Synced) add(path string, info fs.FileInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.folders) >= mostSynced || s.folders == nil {
		s.folders = map[string]fs.FileInfo{}
	}
	s.folders[path] = info
}

// Forget forgets a folder that was removed: another one may get its number.
func (s *Synced) Forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.folders, "/"+path)
}

// SyncFolder writes the entries of a folder to the disk. It is no error that a file system cannot sync folders.
func SyncFolder(folder *os.Root) error {
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	return syncOpen(f)
}

func syncOpen(f *os.File) error {
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
