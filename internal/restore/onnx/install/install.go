package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"ddiff/internal/regular"
)

// Options configure an installation.
type Options struct {
	// EP is the build to install, [CPU] or [CUDA], or [OpenVINO]. Default: CPU.
	EP string
	// From is the file of one of the release's archives. Default: empty, which downloads one with Client. The pinned checksums
	// apply in both cases.
	From string
	// Client downloads the archive, a Client constant. Default: empty, the first that works of npm, pip and curl (CPU),
	// Maven (built for CUDA 12) and pip (CUDA 13) for CUDA, or pip (OpenVINO). A named client also replaces an installed library
	// that came from another one.
	Client string
	// Fallback receives each client that is missing or failed, and the client that is tried next. Default: nil, none.
	Fallback func(failed string, err error, next string)
	// CacheDir contains a directory VERSION-EP for each installed release. Default: ddiff/onnxruntime in the user's cache
	// directory.
	CacheDir string
	// Progress receives the name of each stage as it begins: wait for another installation, check the installed files, download and verify
	// the archive, extract the libraries. Default: nil, none.
	Progress func(stage string)
	// OS and Arch are those of the build, as Go names them. Default: this machine's. A build for another machine needs a
	// CacheDir of its own.
	OS, Arch string
}

// Install installs the pinned release of an execution provider in the cache and returns its library. It returns an
// installed release that matches its checksums with source [SourceCache], and replaces a damaged one. Concurrent
// processes share one installation. An error leaves the cache unchanged.
//
// Errors include [ErrUnsupported], [ErrDownload], [ErrClientMissing], [ErrChecksum] and [ErrWriters].
func Install(ctx context.Context, opts Options) (Library, error) {
	ep := opts.EP
	if ep == "" {
		ep = CPU
	}
	release, err := releaseFor(ep, cmp.Or(opts.OS, runtime.GOOS), cmp.Or(opts.Arch, runtime.GOARCH))
	if err != nil {
		return Library{}, err
	}
	lib, err := release.install(ctx, opts)
	if err != nil {
		return Library{}, fmt.Errorf("install %s: %w", release.title(), err)
	}
	return lib, nil
}

// lockPoll is the interval of attempts to acquire the lock.
const lockPoll = 100 * time.Millisecond

// workPattern matches the directories of unfinished installations.
const workPattern = ".install-*"

func (r release) install(ctx context.Context, opts Options) (lib Library, err error) {
	sources, err := r.sourcesOf(opts.Client)
	if err != nil {
		return Library{}, err
	}
	cache, err := cacheDirectory(opts.CacheDir)
	if err != nil {
		return Library{}, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Library{}, fmt.Errorf("create the cache: %w", err)
	}
	if err := checkWriters(cache, nil); err != nil {
		return Library{}, fmt.Errorf("check the cache: %w", err)
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	opts.Progress("wait")
	lock := flock.New(filepath.Join(cache, ".lock"), flock.SetPermissions(0o644))
	if _, err := lock.TryLockContext(ctx, lockPoll); ctx.Err() != nil {
		return Library{}, fmt.Errorf("wait for another installation with the lock %s: %w", lock.Path(), context.Cause(ctx))
	} else if err != nil {
		return Library{}, fmt.Errorf("lock the cache: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	final := r.directory(cache)
	opts.Progress("check")
	switch s, err := installed(sources, final, source.verify); {
	case err == nil:
		return r.library(s, final, SourceCache), nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChecksum):
		return Library{}, err
	}
	work, err := workDirectory(cache)
	if err != nil {
		return Library{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	download, staged := filepath.Join(work, "download"), filepath.Join(work, "staged")
	if err := errors.Join(os.Mkdir(download, 0o755), os.Mkdir(staged, 0o755)); err != nil {
		return Library{}, err
	}
	s, path, err := obtain(ctx, sources, download, opts)
	if err != nil {
		return Library{}, err
	}
	opts.Progress("extract")
	if err := s.extract(ctx, path, staged); err != nil {
		return Library{}, err
	}
	if err := os.Rename(final, filepath.Join(work, "replaced")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Library{}, fmt.Errorf("replace a damaged release: %w", err)
	}
	if err := regular.MoveFolder(staged, final); err != nil {
		return Library{}, fmt.Errorf("move the release into place: %w", err)
	}
	return r.library(s, final, SourceInstall), nil
}

// workDirectory creates a directory for an installation, beside its destination so that a rename can move the result.
// The caller holds the lock, so existing work directories belong to killed processes.
func workDirectory(cache string) (string, error) {
	stale, err := filepath.Glob(filepath.Join(cache, workPattern))
	if err != nil {
		return "", err
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("remove an interrupted installation: %w", err)
		}
	}
	work, err := os.MkdirTemp(cache, workPattern)
	if err != nil {
		return "", fmt.Errorf("create a work directory: %w", err)
	}
	return work, nil
}

// obtain returns the path of a verified archive, and its source. It downloads into dir, which is empty.
func obtain(ctx context.Context, sources []source, dir string, opts Options) (source, string, error) {
	if opts.From != "" {
		return choose(sources, opts)
	}
	failures := ErrDownload
	for i, s := range sources {
		path, err := s.verifiedDownload(ctx, dir, opts)
		if err == nil {
			return s, path, nil
		}
		if ctx.Err() != nil {
			return source{}, "", err
		}
		failures = fmt.Errorf("%w; %s: %w", failures, s.Client, err)
		if i+1 < len(sources) && opts.Fallback != nil {
			opts.Fallback(s.Client, err, sources[i+1].Client)
		}
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Archive.Name)
	}
	return source{}, "", fmt.Errorf("%w; get %s another way and pass it with --from FILE", failures, strings.Join(names, " or "))
}

// verifiedDownload downloads and verifies the archive of s into a directory of its own below dir.
func (s source) verifiedDownload(ctx context.Context, dir string, opts Options) (string, error) {
	dir = filepath.Join(dir, s.Client)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	opts.Progress("download")
	path, err := s.download(ctx, dir)
	if err != nil {
		return "", err
	}
	opts.Progress("verify")
	return path, s.Archive.verify(path)
}

// choose returns the archive that opts.From names, and the source to which it belongs by its size.
func choose(sources []source, opts Options) (source, string, error) {
	path := opts.From
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return source{}, "", fmt.Errorf("--from: %w", err)
	}
	opts.Progress("verify")
	var expected []string
	for _, s := range sources {
		if s.Archive.Size == info.Size() {
			return s, path, s.Archive.verify(path)
		}
		expected = append(expected, fmt.Sprintf("%d of %s", s.Archive.Size, s.Archive.Name))
	}
	return source{}, "", fmt.Errorf("verify %s: %w: the file has %d bytes, want %s",
		path, ErrChecksum, info.Size(), strings.Join(expected, ", or "))
}
