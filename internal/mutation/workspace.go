package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cacheLimit is the size of the build cache in bytes above which a run starts with an empty one. One version of the tree
// needs less than a tenth of it.
const cacheLimit = 4 << 30

// A workspace is a copy of the working tree below .cache, in which mutants are built and tested, with a build cache of
// its own: thousands of mutants would fill the user's.
type workspace struct {
	folder  string // absolute
	cache   string // of the go command
	slack   limits // of each run of tests on a mutant, beyond multiples of the time of the original
	lock    *os.File
	entries map[string]bool    // of the build cache, before the first mutant of a package
	tried   map[string]outcome // by the mutated source
	// noticedBy counts the mutants that a test has noticed, by file and test.
	noticedBy map[string]map[string]int
}

func newWorkspace(folder, cache string, slack limits) *workspace {
	return &workspace{folder: folder, cache: cache, slack: slack, tried: map[string]outcome{}, noticedBy: map[string]map[string]int{}}
}

// openWorkspace copies the files of the working tree that Git does not ignore. It fails if another process uses the
// workspace.
func openWorkspace(ctx context.Context) (*workspace, error) {
	folder, err := filepath.Abs(filepath.Join(".cache", "mutation"))
	if err != nil {
		return nil, err
	}
	w := newWorkspace(folder, filepath.Join(folder, "go-build"), limits{wall: 30 * time.Second, cpu: 10 * time.Second})
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if w.lock, err = os.Create(filepath.Join(folder, "lock")); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(w.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: another run uses it: %w", folder, err), w.lock.Close())
	}
	for _, name := range []string{w.tree(), w.temporary(), w.mutants()} {
		if err := os.RemoveAll(name); err != nil {
			return nil, errors.Join(err, w.lock.Close())
		}
		if err := os.MkdirAll(name, 0o755); err != nil {
			return nil, errors.Join(err, w.lock.Close())
		}
	}
	if err := limitCache(w.cache, cacheLimit); err != nil {
		return nil, errors.Join(fmt.Errorf("empty the build cache: %w", err), w.lock.Close())
	}
	if err := w.copyTree(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the working tree: %w", err), w.lock.Close())
	}
	return w, nil
}

func (w *workspace) close() {
	_ = os.RemoveAll(w.temporary())
	_ = w.lock.Close()
}

func (w *workspace) tree() string      { return filepath.Join(w.folder, "tree") }
func (w *workspace) temporary() string { return filepath.Join(w.folder, "tmp") }
func (w *workspace) mutants() string   { return filepath.Join(w.folder, "mutants") }

func (w *workspace) copyTree(ctx context.Context) error {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("list the files with git: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not committed
		}
		if err != nil {
			return err
		}
		to := filepath.Join(w.tree(), name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, to); err != nil {
				return err
			}
			continue
		}
		if err := copyFile(name, to, info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, mode.Perm())
}

// build builds the tests of a package, without vet and inlining: most of the time of a mutant is that of its build. The
// first result is false if the compiler refuses the source.
func (w *workspace) build(ctx context.Context, name, output string, flags ...string) (bool, error) {
	arguments := append([]string{"test", "-c", "-vet=off", "-gcflags=-l", "-ldflags=-s -w", "-o", output}, flags...)
	command := exec.CommandContext(ctx, "go", append(arguments, "./"+name)...)
	command.Dir = w.tree()
	command.Env = append(os.Environ(), "GOCACHE="+w.cache, "TMPDIR="+w.temporary())
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && bytes.Contains(text, []byte("# ")) {
		return false, fmt.Errorf("build: %s", text)
	}
	if err != nil {
		return true, fmt.Errorf("go test -c: %w: %s", err, text)
	}
	return true, nil
}

// limitCache empties the build cache if it is larger than a size in bytes: each version of the tree adds its packages, and
// a run that was killed leaves those of its last mutant.
func limitCache(cache string, size int64) error {
	total := int64(0)
	err := filepath.WalkDir(cache, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || total <= size {
		return err
	}
	return os.RemoveAll(cache)
}

// rememberCache notes the entries of the build cache, for trimCache.
func (w *workspace) rememberCache() {
	w.entries = map[string]bool{}
	w.walkCache(func(name string) { w.entries[name] = true })
}

// trimCache removes the entries of mutants from the build cache. Every package that a mutant builds depends on its source,
// so no other mutant needs them.
func (w *workspace) trimCache() {
	w.walkCache(func(name string) {
		if !w.entries[name] {
			_ = os.RemoveAll(name)
		}
	})
}

// walkCache visits the entries of the build cache: files, or folders of programs, with a dash in the name.
func (w *workspace) walkCache(visit func(name string)) {
	entries, _ := filepath.Glob(filepath.Join(w.cache, "??", "*-*"))
	for _, name := range entries {
		visit(name)
	}
}
