package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Options say what to install, and from where.
type Options struct {
	// EP is the build to install, [CPU] or [CUDA]. Default CPU.
	EP string
	// From is the release's archive: a file, or a URL (https, or http on this machine). Empty gets
	// it through npm (CPU) or Maven (CUDA). The checksum is the same either way.
	From string
	// CacheDir is where releases are installed, each in a directory VERSION-EP. Default
	// ddiff/onnxruntime in the user's cache directory.
	CacheDir string
	// Progress is told how the installation goes on. May be nil.
	Progress Progress
}

// Install puts the pinned release of an execution provider into the cache and returns its library.
// A release that is there and matches its checksums is returned as it is, with source
// [SourceCache]; a damaged one is replaced. Any number of processes may install at once: one
// works, the others wait and find its result. When Install fails, the cache is as it was before.
//
// The error wraps [ErrUnsupported], [ErrClientMissing], [ErrChecksum] or [ErrUnsafeArchive] where
// that is the cause.
func Install(ctx context.Context, opts Options) (Library, error) {
	ep := opts.EP
	if ep == "" {
		ep = CPU
	}
	release, err := releaseFor(ep, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Library{}, err
	}
	lib, err := release.install(ctx, opts)
	if err != nil {
		return Library{}, fmt.Errorf("install ONNX Runtime %s for %s: %w", release.version, ep, err)
	}
	return lib, nil
}

// workPattern names the directories of installations under way.
const workPattern = ".install-*"

func (r release) install(ctx context.Context, opts Options) (lib Library, err error) {
	cache, err := cacheDirectory(opts.CacheDir)
	if err != nil {
		return Library{}, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Library{}, fmt.Errorf("make the cache: %w", err)
	}
	wait := opts.Progress.begin(StageWait, 0)
	unlock, err := lockCache(ctx, cache)
	if err != nil {
		return Library{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	wait.end()

	final := r.directory(cache)
	switch err := r.verify(ctx, final, opts.Progress); {
	case err == nil:
		return r.library(final, SourceCache), nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChecksum):
		return Library{}, err
	}
	work, err := workDirectory(cache)
	if err != nil {
		return Library{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	staged, err := r.stage(ctx, work, opts)
	if err != nil {
		return Library{}, err
	}
	if err := os.Rename(final, filepath.Join(work, "replaced")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Library{}, fmt.Errorf("replace a damaged release: %w", err)
	}
	if err := os.Rename(staged, final); err != nil {
		return Library{}, fmt.Errorf("move the release into place: %w", err)
	}
	return r.library(final, SourceInstall), nil
}

// workDirectory makes a directory for an installation, beside its destination so that the result
// can be renamed there. The caller holds the lock, so any older one was left by a killed process.
func workDirectory(cache string) (string, error) {
	left, err := filepath.Glob(filepath.Join(cache, workPattern))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("clear an interrupted installation: %w", err)
		}
	}
	work, err := os.MkdirTemp(cache, workPattern)
	if err != nil {
		return "", fmt.Errorf("make a directory to work in: %w", err)
	}
	return work, nil
}

// stage gets the archive, checks it and extracts it into a directory under work, which it returns.
func (r release) stage(ctx context.Context, work string, opts Options) (string, error) {
	download, staged := filepath.Join(work, "download"), filepath.Join(work, "staged")
	if err := errors.Join(os.Mkdir(download, 0o755), os.Mkdir(staged, 0o755)); err != nil {
		return "", err
	}
	var path string
	var err error
	if opts.From == "" {
		path, err = r.download(ctx, download, opts.Progress)
	} else {
		path, err = r.archive.fetch(ctx, opts.From, download, opts.Progress)
	}
	if err != nil {
		return "", err
	}
	if err := r.archive.verify(ctx, path, opts.Progress); err != nil {
		return "", err
	}
	return staged, r.extract(ctx, path, staged, opts.Progress)
}
